// Shows when a request with a given cost would be admitted.

import { useState } from 'preact/hooks'
import { type Explanation, keyOf, type OneKey } from '../api-types.ts'
import { numberProblem } from '../components/field.tsx'
import { useUniqueId } from '../components/unique-id.ts'
import { count, roundDuration } from '../format.ts'
import { useQuery } from '../use-query.ts'

const EVERY_MS = 1000

export function CostCheck({ of, usual }: { readonly of: OneKey; readonly usual: Explanation }) {
  const id = useUniqueId()
  const [text, setText] = useState('1')
  const cost = text.trim() !== '' && numberProblem(text) === undefined ? Number(text) : undefined
  const isOther = cost !== undefined && cost !== usual.cost
  const body = { limiter: of.limiter, key: keyOf(of), cost }
  const { data, error } = useQuery<Explanation>(isOther ? '/v1/explain' : undefined, {
    body,
    everyMs: EVERY_MS,
  })
  const explanation = cost === usual.cost ? usual : data
  return (
    <p class="asked-cost">
      <label for={id}>A request costing</label>
      <input
        id={id}
        type="text"
        inputMode="numeric"
        size={6}
        value={text}
        aria-invalid={cost === undefined}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <span class="verdict">
        {cost === undefined
          ? 'units. Enter a positive whole number.'
          : `${cost === 1 ? 'unit' : 'units'} ${explanation === undefined ? (error === undefined ? '…' : 'can’t be checked now.') : verdictOf(explanation)}`}
      </span>
    </p>
  )
}

function verdictOf({ allowed, retryAfterMs, deniedBy, limits, blockedMs, cost }: Explanation): string {
  if (allowed) return 'would be admitted now.'
  if (blockedMs === null) return 'is denied until the key is unblocked.'
  if (retryAfterMs === null) {
    const small = limits.filter(({ shadow, limit }) => !shadow && limit < cost)
    return `is never admitted: ${count(cost)} exceeds the limit ${small.map(({ name }) => name).join(', ')}.`
  }
  const why = blockedMs > 0 ? 'the key is blocked' : `${deniedBy.join(', ')} is full`
  return `would be admitted in ${roundDuration(retryAfterMs)}: ${why}.`
}
