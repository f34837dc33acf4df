"""The page of `shardctl page` in a real browser: by mouse, by keyboard,
with hostile names, with 1,000 classes."""

import json

import browser
from shardify_support import SMALL, TestCase, main, make_images, png, shardctl, shardify, write

# Folders and files may have these names. A '/' is a folder inside.
HOSTILE = [
    "</script><script>window.hacked=1</script>.png",
    "<img src=x onerror='window.hacked=2'>/a.png",
    "a\"b'c&amp;d/e.png",
    "line\nbreak/f\r\n.png",
    "\u05e9\u05dc\u05d5\u05dd\u202egnp.exe/\u0645\u0631\u062d\u0628\u0627.png",
    "@data@/@script@.png",
    "__proto__/constructor.png",
    "\u2028/\u2029.png",
    "{{7*7}}/${7*7}.png",
]


class Page(TestCase):
    def setUp(self):
        self.browser = browser.Browser()  # first: the test is skipped where there is none
        super().setUp()

    def tearDown(self):
        self.browser.close()
        super().tearDown()

    def open_page(self, images, *options):
        self.assertIn(shardify(images, self.out, *SMALL).code, (0, 1))
        self.assert_code(shardctl("page", self.out, self.path / "page", *options), 0)
        self.browser.resize(1100, 800)
        self.browser.open((self.path / "page" / "index.html").as_uri())
        return self.browser

    def shown(self):
        """Keys of the pictures that are shown."""
        return self.browser.value(
            "[...document.querySelectorAll('#pictures .key')].map((e) => e.textContent)"
        )

    def assert_clean(self):
        self.assertEqual(self.browser.problems, [])
        self.assertEqual([url for url in self.browser.requests if not url.startswith(("file:", "data:"))], [])

    def test_it_loads_without_errors_or_network(self):
        page = self.open_page(make_images(self.path / "images"))
        self.assertEqual(page.value("document.title"), "out")
        self.assertEqual(len(self.shown()), 12)
        page.wait_for(
            "[...document.querySelectorAll('#pictures img')].slice(0, 4).every((i) => i.complete && "
            "i.naturalWidth === 32)"
        )
        self.assertEqual(page.value("document.querySelectorAll('#histogram button').length"), 3)
        self.assertEqual(page.value("document.querySelectorAll('#channel-list svg').length"), 3)
        self.assertIn("u8 nhwc [32, 32, 3]", page.value("document.getElementById('facts').textContent"))
        self.assert_clean()

    def test_augmented_samples_are_shown_if_asked_for(self):
        page = self.open_page(make_images(self.path / "images"))
        self.assertTrue(page.value("document.getElementById('augmented').hidden"))
        self.assert_code(
            shardctl("page", self.out, self.path / "page", "--augment", "simclr", "--overwrite"), 0
        )
        page.open((self.path / "page" / "index.html").as_uri())
        self.assertFalse(page.value("document.getElementById('augmented').hidden"))
        page.value("document.getElementById('augmented').scrollIntoView()")
        self.assertEqual(page.value("document.querySelectorAll('#augmented-list li').length"), 8)
        page.wait_for(
            "[...document.querySelectorAll('#augmented-list li:first-child img')].every((i) => i.complete && "
            "i.naturalWidth === 32)"
        )
        self.assertEqual(
            page.value("document.querySelectorAll('#augmented-list li:first-child img').length"), 7
        )
        self.assertIn("simclr", page.value("document.getElementById('augmented-note').textContent"))
        self.assert_clean()

    def test_filters_and_zoom_work_with_the_mouse(self):
        page = self.open_page(make_images(self.path / "images"))
        page.click("#histogram li:nth-child(2) button")
        self.assertEqual(self.shown(), [f"bee/{i}.png" for i in range(4)])
        self.assertEqual(page.value("document.getElementById('filter-class').selectedOptions[0].text"), "bee")
        self.assertEqual(page.value("document.getElementById('shown').textContent"), "4 of 12 pictures")
        page.click("#pictures li:nth-child(3) button")
        self.assertTrue(page.value("document.getElementById('zoom').open"))
        self.assertEqual(page.value("document.getElementById('zoom-key').textContent"), "bee/2.png")
        page.wait_for("document.getElementById('zoom-picture').naturalWidth === 32")
        page.click("#zoom-next")
        self.assertEqual(page.value("document.getElementById('zoom-key').textContent"), "bee/3.png")
        page.click("#zoom-next")
        self.assertEqual(page.value("document.getElementById('zoom-key').textContent"), "bee/0.png")
        page.click("#zoom-close")
        self.assertFalse(page.value("document.getElementById('zoom').open"))
        page.click("#filter button[type=reset]")
        page.wait_for("document.querySelectorAll('#pictures li').length === 12")
        page.click("#filter-key")
        page.type("/3.PNG")
        self.assertEqual(self.shown(), ["ant/3.png", "bee/3.png", "cow/3.png"])
        self.assert_clean()

    def test_everything_works_with_the_keyboard_alone(self):
        page = self.open_page(make_images(self.path / "images"))
        page.press("Tab")
        self.assertEqual(page.value("document.activeElement.textContent"), "Skip to the pictures")
        page.press("Enter")
        self.assertEqual(page.value("document.activeElement.id"), "gallery")
        page.press("Tab", 2)
        self.assertEqual(page.value("document.activeElement.id"), "filter-key")
        page.type("cow")
        page.press("Tab", 2)  # Show all, first picture
        self.assertEqual(page.value("document.activeElement.title"), "cow/0.png")
        page.press("Enter")
        self.assertTrue(page.value("document.getElementById('zoom').open"))
        page.press("ArrowRight")
        self.assertEqual(page.value("document.getElementById('zoom-key').textContent"), "cow/1.png")
        page.press("ArrowLeft", 2)
        self.assertEqual(page.value("document.getElementById('zoom-key').textContent"), "cow/3.png")
        page.press("Escape")
        self.assertFalse(page.value("document.getElementById('zoom').open"))
        self.assertEqual(page.value("document.activeElement.title"), "cow/0.png")  # where it was before
        page.value("document.querySelector('#histogram button').focus()")
        page.press(" ")
        self.assertEqual(page.value("document.activeElement.getAttribute('aria-pressed')"), "true")
        self.assert_clean()

    def test_hostile_names_are_text(self):
        for name in HOSTILE:
            write(self.path / "images" / name, png(HOSTILE.index(name)))
        write(self.path / "images/<b>bad</b>.png", b'<b>"no" image')
        page = self.open_page(self.path / "images", "--duplicates")
        self.assertIsNone(page.value("window.hacked"))
        dataset = json.loads((self.out / "dataset.json").read_text(encoding="utf-8"))
        classes = page.value("[...document.querySelectorAll('#histogram .name')].map((e) => e.textContent)")
        self.assertEqual(classes, dataset["classes"])
        keys = set(self.shown())
        for name in HOSTILE:
            self.assertIn(name.replace("\n", "\\x0a").replace("\r", "\\x0d"), keys)
        self.assertEqual(
            page.value("document.querySelectorAll('main b, main script, #pictures img[onerror]').length"), 0
        )
        page.click("#filter-key")
        page.type("onerror='")
        self.assertEqual(len(self.shown()), 1)
        page.click("#pictures button")
        self.assertIn("<img src=x", page.value("document.getElementById('zoom-key').textContent"))
        self.assertEqual(page.value("document.getElementById('zoom-key').children.length"), 0)
        self.assertIn("<b>bad</b>.png", page.value("document.getElementById('reject-list').textContent"))
        self.assert_clean()

    def test_a_thousand_classes_stay_responsive(self):
        for i in range(1000):
            write(self.path / "images" / f"class {i:04}" / f"{i}.png", png(i, 8, 8))
        page = self.open_page(self.path / "images")
        self.assertEqual(page.value("document.querySelectorAll('#histogram button').length"), 1000)
        self.assertEqual(len(self.shown()), 120)
        page.click("#more")
        self.assertEqual(len(self.shown()), 240)
        self.assertEqual(page.value("document.activeElement.title"), "class 0120/120.png")
        milliseconds = page.value("""(() => {
            const begin = performance.now(), field = document.getElementById("filter-key");
            field.value = "/99";
            field.dispatchEvent(new Event("input"));
            document.body.getBoundingClientRect();
            return performance.now() - begin;
        })()""")
        self.assertLess(milliseconds, 1000)
        self.assertEqual(len(self.shown()), 11)
        page.click("#class-search")
        page.type("class 099")
        page.wait_for("document.querySelectorAll('#histogram li').length === 10")
        self.assert_clean()

    def test_it_fits_a_phone_and_has_a_dark_theme(self):
        page = self.open_page(make_images(self.path / "images", classes=("a" * 100, "bee")))
        light = page.value("getComputedStyle(document.body).backgroundColor")
        for width in (320, 390, 700):
            page.resize(width, 700, dark=True)
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), width)
        self.assertNotEqual(page.value("getComputedStyle(document.body).backgroundColor"), light)
        page.click("#pictures button")
        self.assertLessEqual(page.value("document.getElementById('zoom').getBoundingClientRect().right"), 700)
        self.assert_clean()

    def test_all_controls_and_pictures_have_names(self):
        page = self.open_page(make_images(self.path / "images"))
        named = [
            name
            for name in page.names()
            if name[0] in ("button", "searchbox", "textbox", "combobox", "image", "link", "region")
        ]
        self.assertGreater(len(named), 30)
        self.assertEqual([role for role, name in named if not name.strip()], [])

    def test_duplicates_and_rejects_are_shown(self):
        images = make_images(self.path / "images")
        write(images / "cow" / "copy.png", png(0))
        write(images / "cow" / "broken.png", png(1)[:60])
        page = self.open_page(images, "--duplicates")
        text = page.value("document.getElementById('duplicate-list').textContent")
        for piece in ("ant/0.png", "cow/copy.png", "labels differ"):
            self.assertIn(piece, text)
        self.assertEqual(
            page.value("document.getElementById('reject-note').textContent"), "1 of 14 inputs was not stored"
        )
        page.click("#reject-list summary", at=0.05)
        self.assertTrue(page.value("document.querySelector('#reject-list details').open"))
        self.assertIn(
            "cow/broken.png", page.value("document.querySelector('#reject-list details').textContent")
        )
        self.assert_clean()


if __name__ == "__main__":
    main()
