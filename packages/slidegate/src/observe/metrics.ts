export { Histogram, type HistogramCounts } from '../runtime/histogram.ts'
export { DecisionCounts, type DecisionCountsRead, type LimitCounts } from './decision-counts.ts'
