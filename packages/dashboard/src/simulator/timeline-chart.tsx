// A chart of a log's admitted and denied requests over time.

import { useMemo } from 'preact/hooks'
import uPlot from 'uplot'
import { axisIn, faint, usePlot } from '../components/plot.ts'
import { utc } from '../format.ts'
import { colorOf } from '../theme.ts'
import type { Simulated, Timeline } from './simulate.ts'

const HEIGHT = 170

/** Charts a log's requests over time, in UTC. Stacks denied requests on top of admitted ones. */
export function TimelineChart({
  label,
  timeline,
  simulated,
}: {
  readonly label: string
  readonly timeline: Timeline
  readonly simulated: Simulated
}) {
  const columns = useMemo(() => columnsOf(timeline, simulated), [timeline, simulated])
  const place = usePlot((element) => {
    const admitted = colorOf(element, '--allowed')
    const denied = colorOf(element, '--denied')
    const axis = axisIn(element)
    const paths = uPlot.paths.stepped!({ align: 1 })
    const line = { width: 1, points: { show: false }, paths }
    return {
      height: HEIGHT,
      legend: { show: false },
      cursor: { show: false },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.05)] } },
      axes: [
        { ...axis, space: 70, values: (_plot, splits) => splits.map(timeAt) },
        { ...axis, size: 54 },
      ],
      series: [
        {},
        { ...line, label: 'Requests', stroke: denied },
        { ...line, label: 'Admitted', stroke: admitted, fill: faint(admitted, 0.35) },
      ],
      bands: [{ series: [1, 2], fill: faint(denied, 0.35) }],
    }
  }, columns)
  return <div ref={place} class="plot" role="img" aria-label={label} />
}

function columnsOf(
  { fromMs, stepMs, steps }: Timeline,
  { admittedOverTime, deniedOverTime }: Simulated,
): uPlot.AlignedData {
  // Adds a point for the end of the last step.
  const seconds = Array.from({ length: steps + 1 }, (_, i) => (fromMs + i * stepMs) / 1000)
  const admitted = Array.from(admittedOverTime)
  const requests = admitted.map((count, i) => count + deniedOverTime[i]!)
  return [seconds, [...requests, requests.at(-1)!], [...admitted, admitted.at(-1)!]]
}

/** Formats a time as `09:30`, with the date at the first time of each day. */
function timeAt(second: number, i: number, seconds: readonly number[]): string {
  const [day = '', time = ''] = utc(second * 1000).split(' ')
  const isFirst = i === 0 || !utc(seconds[i - 1]! * 1000).startsWith(day)
  const shown = seconds.some((each) => each % 60 !== 0) ? time : time.slice(0, 5)
  return isFirst ? `${shown}\n${day.slice(5)}` : shown
}
