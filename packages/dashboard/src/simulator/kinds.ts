/** What is compared. */
export const KIND_NAMES = ['sliding', 'fixed', 'bucket', 'counter'] as const

export type KindName = (typeof KIND_NAMES)[number]

export const KIND_LABELS: Readonly<Record<KindName, string>> = {
  sliding: 'Sliding window',
  fixed: 'Fixed window',
  bucket: 'Token bucket',
  counter: 'Sliding counter',
}
