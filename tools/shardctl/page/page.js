"use strict";
// Shows the data of this page. All text from the data set becomes text nodes, never markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const count = (number) => number.toLocaleString("en");
  const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : /(s|x|ch|sh)$/.test(word) ? "es" : "s"}`;
  const kPageful = 120; // pictures that are added at once

  // element("p", {className: "quiet", title: "..."}, "text", child, ...)
  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  function fillList(list, pairs) {
    for (const [name, value] of pairs) {
      list.append(element("dt", {}, name), element("dd", {dir: "auto"}, value));
    }
  }

  const className = (number) => (number < 0 ? "" : data.classes[number].name);
  const pictureFile = (index) => `pictures/${index}.jpg`;
  // Of the picture of a sample. Samples of any size have their own.
  const sizeOf = (sample) => ("width" in sample ? sample : data);
  const pictureClass = (sample) => (Math.max(sizeOf(sample).width, sizeOf(sample).height) <= 128 ? "small" : "");

  // --- About ---

  function showAbout() {
    byId("name").textContent = data.name;
    byId("summary").textContent = data.summary;
    fillList(byId("facts"), data.facts);
    fillList(byId("pipeline"), data.pipeline);
    for (const file of data.files) {
      byId("files").append(element("tr", {}, element("td", {className: "path"}, file.name),
        element("td", {className: "number"}, file.samples === null ? "" : count(file.samples)),
        element("td", {className: "number"}, count(file.size_bytes))));
    }
    if (data.more_files > 0) byId("more-files").textContent = `and ${plural(data.more_files, "more shard")}`;
  }

  // --- Classes ---

  const classButtons = [];

  function showClasses() {
    const shown = data.classes.length;
    if (shown === 0) {
      byId("class-note").textContent = data.class_note;
      byId("class-controls").hidden = true;
      return;
    }
    byId("class-note").textContent = data.class_note;
    const largest = data.classes.reduce((most, one) => Math.max(most, one.samples), 1);
    data.classes.forEach((one, number) => {
      const bar = element("span", {className: "bar"});
      bar.style.width = `${(100 * one.samples) / largest}%`;
      const button = element("button", {type: "button", title: one.name, "aria-pressed": "false"},
        element("span", {className: "name", dir: "auto"}, one.name), bar,
        element("span", {className: "number"}, count(one.samples)));
      button.addEventListener("click", () => {
        const select = byId("filter-class");
        select.value = select.value === String(number) ? "" : String(number);
        applyFilter();
      });
      classButtons.push(button);
    });
    orderClasses();
    byId("class-search").addEventListener("input", orderClasses);
    byId("class-order").addEventListener("change", orderClasses);
    byId("class-controls").addEventListener("submit", (event) => event.preventDefault());
  }

  function orderClasses() {
    const text = byId("class-search").value.toLowerCase();
    const orders = {
      id: (a, b) => a - b,
      name: (a, b) => className(a).localeCompare(className(b)) || a - b,
      most: (a, b) => data.classes[b].samples - data.classes[a].samples || a - b,
      least: (a, b) => data.classes[a].samples - data.classes[b].samples || a - b,
    };
    const numbers = [...data.classes.keys()].filter((number) => className(number).toLowerCase().includes(text));
    numbers.sort(orders[byId("class-order").value]);
    byId("histogram").replaceChildren(...numbers.map((number) => element("li", {}, classButtons[number])));
  }

  // --- Channels ---

  function histogramPicture(channel) {
    const svgElement = (tag, attributes) => {
      const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      return made;
    };
    const bins = channel.histogram;
    const top = Math.max(1, ...bins);
    const label = `Histogram of ${channel.name}: mean ${channel.mean.toFixed(1)}, standard deviation ${channel.std.toFixed(1)} of 255`;
    const svg = svgElement("svg", {viewBox: `0 0 ${bins.length} 100`, preserveAspectRatio: "none", role: "img", "aria-label": label});
    const steps = bins.map((bin, i) => `V${(100 - (100 * bin) / top).toFixed(1)}H${i + 1}`);
    svg.append(svgElement("path", {d: `M0 100${steps.join("")}V100Z`}));
    return svg;
  }

  function showChannels() {
    byId("channel-note").textContent = data.channel_note;
    for (const channel of data.channels) {
      const text = `${channel.name}: mean ${channel.mean.toFixed(1)}, deviation ${channel.std.toFixed(1)}, from ${channel.min} to ${channel.max}`;
      byId("channel-list").append(element("figure", {className: channel.name}, histogramPicture(channel),
        element("figcaption", {}, text)));
    }
  }

  // --- Pictures ---

  let filtered = []; // of data.samples
  let shown = 0; // of filtered

  function pictureButton(sample, position) {
    const name = className(sample.class);
    const picture = element("img", {
      src: pictureFile(sample.index), loading: "lazy", decoding: "async",
      width: sizeOf(sample).width, height: sizeOf(sample).height,
      alt: `Sample ${sample.index}${name === "" ? "" : `, ${name}`}`, className: pictureClass(sample),
    });
    const button = element("button", {type: "button", title: sample.key}, picture,
      element("span", {className: "class", dir: "auto"}, name === "" ? `#${sample.index}` : name),
      element("span", {className: "key", dir: "auto"}, sample.key));
    button.addEventListener("click", () => openZoom(position));
    return element("li", {}, button);
  }

  function showMore() {
    const end = Math.min(shown + kPageful, filtered.length);
    const first = shown;
    for (; shown < end; ++shown) byId("pictures").append(pictureButton(filtered[shown], shown));
    byId("more").hidden = shown === filtered.length;
    return byId("pictures").children[first];
  }

  function applyFilter() {
    const chosen = byId("filter-class").value;
    const text = byId("filter-key").value.toLowerCase();
    filtered = data.samples.filter((sample) =>
      (chosen === "" || sample.class === Number(chosen)) && sample.key.toLowerCase().includes(text));
    classButtons.forEach((button, number) => button.setAttribute("aria-pressed", String(chosen === String(number))));
    byId("pictures").replaceChildren();
    shown = 0;
    showMore();
    byId("shown").textContent = filtered.length === data.samples.length
      ? plural(filtered.length, "picture") : `${count(filtered.length)} of ${plural(data.samples.length, "picture")}`;
  }

  function showGallery() {
    byId("gallery-note").textContent = data.gallery_note;
    const select = byId("filter-class");
    select.append(element("option", {value: ""}, "all"));
    data.classes.forEach((one, number) => select.append(element("option", {value: String(number)}, one.name)));
    select.parentElement.hidden = data.classes.length === 0;
    select.addEventListener("change", applyFilter);
    byId("filter-key").addEventListener("input", applyFilter);
    const form = byId("filter");
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(applyFilter)); // when the fields are empty
    byId("more").addEventListener("click", () => showMore()?.querySelector("button").focus());
    applyFilter();
  }

  // --- Zoom ---

  const zoom = byId("zoom");
  let zoomed = 0; // of filtered

  function showZoomed(position) {
    zoomed = (position + filtered.length) % filtered.length;
    const sample = filtered[zoomed];
    const picture = byId("zoom-picture");
    picture.src = pictureFile(sample.index);
    picture.alt = `Sample ${sample.index}`;
    picture.className = pictureClass(sample);
    byId("zoom-key").textContent = sample.key;
    byId("zoom-class").textContent = className(sample.class);
    byId("zoom-place").textContent = `sample ${count(sample.index)}; picture ${count(zoomed + 1)} of ${count(filtered.length)}`;
  }

  function openZoom(position) {
    showZoomed(position);
    zoom.showModal();
    byId("zoom-close").focus();
  }

  byId("zoom-previous").addEventListener("click", () => showZoomed(zoomed - 1));
  byId("zoom-next").addEventListener("click", () => showZoomed(zoomed + 1));
  zoom.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") showZoomed(zoomed - 1);
    if (event.key === "ArrowRight") showZoomed(zoomed + 1);
  });
  zoom.addEventListener("click", (event) => {
    if (event.target === zoom) zoom.close(); // beside the picture
  });

  // --- Augmentation ---

  function showAugmented() {
    if (!data.augmented) return;
    byId("augmented").hidden = byId("augmented-link").hidden = false;
    byId("augmented-note").textContent = data.augmented.note;
    const picture = (file, alt) => element("img", {src: file, loading: "lazy", alt, className: pictureClass(data)});
    for (const sample of data.augmented.samples) {
      const row = [picture(pictureFile(sample.index), `Sample ${sample.index} as it is stored`)];
      for (let epoch = 0; epoch < data.augmented.epochs; epoch++) {
        row.push(picture(`pictures/${sample.index}-a${epoch}.jpg`, `Sample ${sample.index} in epoch ${epoch}`));
      }
      byId("augmented-list").append(element("li", {}, element("span", {className: "key", dir: "auto"}, sample.key),
        element("div", {className: "row", tabIndex: 0, role: "group", ariaLabel: `Sample ${sample.index}`}, ...row)));
    }
  }

  // --- Duplicates and rejects ---

  function showDuplicates() {
    byId("duplicate-note").textContent = data.duplicate_note;
    for (const group of data.duplicates) {
      const members = group.samples.map((sample) => element("li", {},
        element("span", {className: "key", dir: "auto"}, sample.key), ` (sample ${count(sample.index)}, `,
        element("bdi", {}, sample.label), ")"));
      if (group.more > 0) members.push(element("li", {className: "quiet"}, `and ${count(group.more)} more`));
      if (group.labels_differ) members.unshift(element("li", {className: "differ"}, "labels differ"));
      const picture = element("img", {src: pictureFile(group.samples[0].index), loading: "lazy",
        alt: `Sample ${group.samples[0].index}`, className: pictureClass(group.samples[0])});
      byId("duplicate-list").append(element("li", {}, picture, element("ul", {}, ...members)));
    }
  }

  function showRejects() {
    byId("reject-note").textContent = data.reject_note;
    for (const group of data.rejects) {
      const examples = group.examples.map((one) => element("li", {},
        element("span", {className: "path", dir: "auto"}, one.path), element("div", {className: "quiet", dir: "auto"}, one.reason)));
      if (group.count > group.examples.length) {
        examples.push(element("li", {className: "quiet"}, `and ${count(group.count - group.examples.length)} more in rejects.csv`));
      }
      byId("reject-list").append(element("details", {},
        element("summary", {}, `${plural(group.count, "file")}: `, element("bdi", {}, group.reason)),
        element("ul", {}, ...examples)));
    }
  }

  showAbout();
  showClasses();
  showChannels();
  showGallery();
  showAugmented();
  showDuplicates();
  showRejects();
})();
