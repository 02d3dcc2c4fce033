// The CSS of the HTML report.

/** Styles for screens, light and dark, and for print. */
export const REPORT_STYLE: string = `
:root {
  color-scheme: light dark;
  --paper: #fff; --panel: #f6f7f9; --text: #1b1f24; --quiet: #57606a; --line: #d8dee4;
  --good: #2f6fbb; --bad: #c2410c; --other: #7a5195; --mark: var(--text);
}
body {
  font: 16px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--text);
  padding: 2rem 1.25rem 4rem; max-width: 60rem; margin: 0 auto;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14171c; --panel: #1d2129; --text: #e6e9ee; --quiet: #a2abb8; --line: #353c47;
    --good: #6ea8f0; --bad: #fb8b4b; --other: #c39be0;
  }
}
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 0.25rem }
* { box-sizing: border-box }
h2 { font-size: 1.25rem; margin: 2.5rem 0 0.5rem }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem }
p { margin: 0.25rem 0 0.75rem }
.quiet, figcaption { color: var(--quiet) }
code { font: 0.875em ui-monospace, monospace; overflow-wrap: anywhere }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: 0.75rem; margin: 1.5rem 0 0 }
.tiles div { background: var(--panel); border-radius: 0.5rem; padding: 0.75rem 1rem }
.tiles dt { color: var(--quiet); font-size: 0.875rem }
.tiles dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums; line-height: 1.3 }
.tiles dd small { font-size: 0.875rem; color: var(--quiet) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: 0.9375rem }
caption { text-align: left; color: var(--quiet); padding: 0.25rem 0 }
th, td { padding: 0.3rem 0.75rem 0.3rem 0; text-align: left; border-bottom: 1px solid var(--line); vertical-align: baseline }
thead th { color: var(--quiet); font-weight: 500; white-space: nowrap }
th.number, td.number { text-align: right }
td.over { color: var(--bad); font-weight: 600 }
tbody th, table code { white-space: nowrap }
td.wide { width: 26%; min-width: 5rem }
figure { margin: 0.5rem 0 0; overflow-x: auto }
.chart { display: block; width: 100%; min-width: 36rem; height: auto }
.chart text { font: 12px system-ui, sans-serif; fill: var(--quiet) }
.chart text.end { text-anchor: end }
.chart text.mark { fill: var(--text); stroke: var(--paper); stroke-width: 5px; paint-order: stroke }
.chart .grid { stroke: var(--line) }
.chart line.mark { stroke: var(--mark); stroke-dasharray: 5 4 }
.bar { display: block; width: 100%; height: 0.75rem }
.admitted, .sliding { fill: var(--good) }
.denied { fill: var(--bad) }
.fixed, .bucket { fill: var(--other) }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; list-style: none; margin: 0 0 0.5rem; padding: 0; color: var(--quiet); font-size: 0.875rem }
.legend svg { width: 0.75rem; height: 0.75rem; margin-right: 0.4rem }
details { margin: 0.5rem 0 }
summary { cursor: pointer; color: var(--quiet); font-size: 0.875rem }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 0.75rem; color: var(--quiet); font-size: 0.875rem }
@media print {
  .chart { min-width: 0 }
  body { max-width: none; padding: 0; font-size: 11pt }
  details { display: none }
  section, figure, tr { break-inside: avoid }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact }
}
`
