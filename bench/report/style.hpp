// The style of a report's page. Colours are variables, so that the dark theme is a list of other values. The
// colours of bars also differ in lightness, and have a contrast of at least 3 to 1 with both backgrounds.
#pragma once

namespace shard::bench {

inline constexpr const char* kPageStyle = R"css(:root {
  color-scheme: light dark;
  --ground: #ffffff; --text: #1b1f24; --faint: #57606a; --line: #d0d7de; --band: #f6f8fa;
  --accent: #0a58b0; --warn: #8a3800; --warn-ground: #fff4e5;
  --g0: #33669f; --g1: #c2452d; --g2: #2c7d46; --g3: #8f6a00; --g4: #8a3d8f; --g5: #17808a; --g6: #6e6e6e;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14181d; --text: #e4e8ec; --faint: #a3adb8; --line: #39424c; --band: #1d232a;
    --accent: #7cb7ff; --warn: #ffb870; --warn-ground: #33240f;
    --g0: #6ea3e0; --g1: #f0836d; --g2: #63bd80; --g3: #d5ad3a; --g4: #cd8bd2; --g5: #55bcc7; --g6: #a3a3a3;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 66rem; background: var(--ground); color: var(--text);
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.8rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; margin: 0 0 .4rem; }
section { border-top: 1px solid var(--line); margin-top: 2.2rem; padding-top: 1.4rem; }
header > p, .command span { color: var(--faint); }
header > p { margin: 0 0 1rem; }
dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(15rem, 1fr)); gap: .6rem 1.5rem; margin: 0; }
dt { color: var(--faint); font-size: .85rem; }
dd { margin: 0; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; list-style: none; padding: 0; margin: 1.2rem 0 0; }
a { color: var(--accent); }
.says { font-size: 1.08rem; margin: 0 0 1rem; }
.problems { background: var(--warn-ground); border-left: 4px solid var(--warn); margin: 1rem 0; }
.problems { padding: .5rem 1rem .5rem 2rem; overflow-wrap: anywhere; }
.notes { color: var(--faint); font-size: .9rem; padding-left: 1.2rem; margin: .6rem 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px; }
.scroll:focus-visible { outline: 2px solid var(--accent); }
table { border-collapse: collapse; width: 100%; font-size: .9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: .5rem .75rem; color: var(--faint); }
th, td { padding: .3rem .75rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); }
th { font-weight: 600; }
tbody th { font-weight: 400; }
thead th { background: var(--band); vertical-align: bottom; }
th.n, td.n { text-align: right; white-space: nowrap; }
thead th.n { white-space: normal; }
td.out { color: var(--warn); white-space: normal; }
.emulated {
  border: 1px dashed currentColor; border-radius: 4px; color: var(--warn); font-size: .75rem; padding: 0 .3rem;
  white-space: nowrap;
}
.command { font-size: .85rem; margin: .6rem 0 0; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Consolas, monospace; overflow-wrap: anywhere; }
figure { margin: 1rem 0; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; color: var(--text); }
svg.wide { min-width: 40rem; }
svg.narrow { display: none; max-width: 30rem; }
@media (max-width: 42rem) {
  svg.wide { display: none; }
  svg.narrow { display: block; }
  th, td { padding: .25rem .45rem; }
  dl { grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
}
svg text { fill: currentColor; font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
svg .faint { fill: var(--faint); }
svg .grid { stroke: var(--line); }
svg .limit { stroke: currentColor; stroke-width: 2.5; }
svg .assumed { stroke: currentColor; stroke-width: 1.5; stroke-dasharray: 4 3; fill-opacity: .45; }
svg .g0 { fill: var(--g0); } svg .g1 { fill: var(--g1); } svg .g2 { fill: var(--g2); } svg .g3 { fill: var(--g3); }
svg .g4 { fill: var(--g4); } svg .g5 { fill: var(--g5); } svg .g6 { fill: var(--g6); }
@media print { nav { display: none; } section { break-inside: avoid; } }
)css";

// Of a chart in a file of its own: the light theme without variables, which not every program that shows SVG
// knows.
inline constexpr const char* kChartStyle = R"css(text { fill: #1b1f24; font: 13px "DejaVu Sans", sans-serif; }
.faint { fill: #57606a; } .grid { stroke: #d0d7de; } .limit { stroke: #1b1f24; stroke-width: 2.5; }
.assumed { stroke: #1b1f24; stroke-width: 1.5; stroke-dasharray: 4 3; fill-opacity: .45; }
.g0 { fill: #33669f; } .g1 { fill: #c2452d; } .g2 { fill: #2c7d46; } .g3 { fill: #8f6a00; }
.g4 { fill: #8a3d8f; } .g5 { fill: #17808a; } .g6 { fill: #6e6e6e; }
)css";

inline constexpr unsigned kPageColours = 7;

}  // namespace shard::bench
