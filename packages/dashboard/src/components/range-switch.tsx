// The switch for a chart's time range.

export type Range = '5m' | '1h' | '7d'

const LABELS: Readonly<Record<Range, string>> = { '5m': '5 min', '1h': '1 hour', '7d': '1 week' }

export function RangeSwitch({
  ranges,
  range,
  onChange,
}: {
  readonly ranges: readonly Range[]
  readonly range: Range
  readonly onChange: (range: Range) => void
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would need a legend, and has its own layout
    <div class="switch" role="group" aria-label="Time range">
      {ranges.map((each) => (
        <button
          key={each}
          type="button"
          class="small"
          aria-pressed={each === range}
          onClick={() => onChange(each)}
        >
          {LABELS[each]}
        </button>
      ))}
    </div>
  )
}
