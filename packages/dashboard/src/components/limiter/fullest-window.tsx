import { count, NONE, share } from '../../format.ts'
import type { TopKeyTold } from '../../told.ts'
import { useAsk } from '../../use-ask.ts'
import { type Explained, keyOf } from '../key/explained.ts'
import { isCut } from '../key-link.tsx'
import { UseMeter } from '../use-meter.tsx'

const EVERY_MS = 3000

/** How full the fullest limit of a key is, by what the store holds now. */
export function FullestWindow({ limiter, of }: { readonly limiter: string; readonly of: TopKeyTold }) {
  const { dimension, key } = of
  const body = { limiter, key: keyOf({ limiter, key, dimension }) }
  const path = isCut(key) ? undefined : '/v1/explain'
  const { data } = useAsk<Explained>(path, { body, everyMs: EVERY_MS })
  const fullest = data?.limits
    .filter(({ limit }) => limit > 0)
    .toSorted((a, b) => b.used / b.limit - a.used / a.limit)[0]
  if (fullest === undefined) return <span class="muted">{NONE}</span>
  const { name, used, limit, shadow } = fullest
  return (
    <span class="use">
      <UseMeter share={used / limit} label={`Used of ${name}`} />
      <span>
        {share(used / limit)}{' '}
        <span class="muted">
          {count(used)} of {name}
          {shadow && ' (shadow)'}
        </span>
      </span>
    </span>
  )
}
