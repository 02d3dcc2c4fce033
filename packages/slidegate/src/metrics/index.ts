export { DecisionCounts, type DecisionCountsRead, type LimitCounts } from './decision-counts.ts'
export { Histogram, type HistogramCounts } from './histogram.ts'
