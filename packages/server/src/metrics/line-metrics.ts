import type { Capture } from '../capture/capture.ts'
import type { DecisionLog } from '../capture/decision-log.ts'
import { counter, type Metric } from './metric.ts'

/** What became of decisions that are written down. */
export function lineMetrics(capture?: Capture, decisionLog?: DecisionLog): Metric[] {
  const { written = 0, dropped = 0 } = capture?.stats() ?? {}
  return [
    counter('slidegate_captured_total', 'Decisions that were captured.', [[{}, written]]),
    counter('slidegate_capture_dropped_total', 'Decisions that should have been, and there was no room.', [
      [{}, dropped],
    ]),
    counter(
      'slidegate_decision_log_dropped_total',
      'Lines of the decision log, or of the log, for which there was no room.',
      [[{}, decisionLog?.stats().dropped ?? 0]],
    ),
  ]
}
