import { bucketOf, crc16, tagsOf } from '../../../src/stores/redis/keyspace.ts'

const BUCKETS = 64
const SLOTS = 16_384

/** Returns the first names with this prefix that are in a bucket. */
function namesIn(bucket: number, prefix: string, count: number): string[] {
  const names: string[] = []
  for (let i = 0; names.length < count; i++) {
    if (bucketOf(`${prefix}${i}`, BUCKETS) === bucket) names.push(`${prefix}${i}`)
  }
  return names
}

/** The bucket that faults on a Cluster affect. */
const STRUCK_BUCKET = 5

/** Buckets in the other two thirds of all slots. */
const OTHER_BUCKETS = [30, 55]

/** Returns several keys in the affected bucket, which share calls, and some in other buckets. */
export function keysWith(prefix: string): readonly string[] {
  return [
    ...namesIn(STRUCK_BUCKET, prefix, 3),
    ...OTHER_BUCKETS.flatMap((bucket) => namesIn(bucket, prefix, 1)),
  ]
}

export const STRUCK_TAG: string = tagsOf(BUCKETS)[STRUCK_BUCKET]!

export const STRUCK_SLOT: number = crc16(STRUCK_TAG) % SLOTS
