// The search form for a key.

import { useState } from 'preact/hooks'
import type { DeclaredLimiter, OneKey } from '../api-types.ts'
import { keyHref } from '../routes.ts'

export function LookUp({
  limiters,
  of,
}: {
  readonly limiters: readonly DeclaredLimiter[]
  readonly of: OneKey
}) {
  const [limiter, setLimiter] = useState(of.limiter)
  const [dimension, setDimension] = useState(of.dimension)
  const [key, setKey] = useState('')
  const chosen = limiters.find(({ name }) => name === limiter)
  const dimensions = chosen === undefined ? [] : dimensionsOf(chosen)
  const counted = dimensions.includes(dimension ?? '') ? dimension : dimensions[0]
  const go = (event: Event): void => {
    event.preventDefault()
    if (key === '') return
    location.hash = keyHref(limiter, key, counted)
    setKey('')
  }
  return (
    <search aria-label="Look up a key">
      <form class="look-up" onSubmit={go}>
        <label>
          Limiter
          <select value={limiter} onChange={(event) => setLimiter(event.currentTarget.value)}>
            {chosen === undefined && <option value={limiter}>{limiter}</option>}
            {limiters.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {dimensions.length > 0 && (
          <label>
            Dimension
            <select value={counted} onChange={(event) => setDimension(event.currentTarget.value)}>
              {dimensions.map((each) => (
                <option key={each} value={each}>
                  {each}
                </option>
              ))}
            </select>
          </label>
        )}
        <label class="look-up-key">
          Key
          <input
            type="text"
            autocomplete="off"
            spellcheck={false}
            placeholder="user:42"
            value={key}
            onInput={(event) => setKey(event.currentTarget.value)}
          />
        </label>
        <button type="submit" disabled={key === ''}>
          Look up
        </button>
      </form>
    </search>
  )
}

function dimensionsOf({ config }: DeclaredLimiter): readonly string[] {
  return Object.keys((config.dimensions ?? {}) as object)
}
