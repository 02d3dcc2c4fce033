// The form for the simulated limit.

import { formatDuration, parseDuration } from '../../../replay/src/text.ts'
import { useUniqueId } from '../components/unique-id.ts'
import { count } from '../format.ts'
import { KIND_LABELS, KIND_NAMES, type KindName, LIMIT_STEPS, stepOf, WINDOW_STEPS } from './choices.ts'

/** The numbers to simulate, as typed by the user. */
export interface Numbers {
  readonly limit: string
  /** Such as `1m`. */
  readonly window: string
  readonly kinds: readonly KindName[]
}

const MOST = 2 ** 40
const SHORTEST_MS = 10
const LONGEST_MS = 366 * 86_400_000

/** The limit, or `undefined` if it isn't valid. */
export function limitIn({ limit }: Numbers): number | undefined {
  const number = /^\d{1,13}$/.test(limit) ? Number(limit) : 0
  return number >= 1 && number <= MOST ? number : undefined
}

export function windowIn({ window }: Numbers): number | undefined {
  const ms = parseDuration(window.trim())
  return ms !== undefined && ms >= SHORTEST_MS && ms <= LONGEST_MS ? ms : undefined
}

export function LimitPanel({
  numbers,
  progress,
  onChange,
}: {
  readonly numbers: Numbers
  /** The progress of the simulation from 0 to 1, or `undefined` if it isn't running. */
  readonly progress: number | undefined
  readonly onChange: (numbers: Numbers) => void
}) {
  const { kinds } = numbers
  const limit = limitIn(numbers)
  const windowMs = windowIn(numbers)
  return (
    <section class="panel" aria-label="Limit">
      <div class="panel-head">
        <h2>Limit</h2>
        {progress !== undefined && <progress value={progress} aria-label="Simulating" />}
      </div>
      <div class="limit-choice">
        <Adjusted
          label="Requests"
          steps={LIMIT_STEPS}
          value={limit}
          text={numbers.limit}
          inWords={(step) => `${count(step)} per window`}
          problem={limit === undefined ? `Enter a whole number from 1 to ${count(MOST)}.` : undefined}
          onStep={(step) => onChange({ ...numbers, limit: `${step}` })}
          onText={(text) => onChange({ ...numbers, limit: text.trim() })}
        />
        <Adjusted
          label="Window"
          steps={WINDOW_STEPS}
          value={windowMs}
          text={numbers.window}
          inWords={(step) => formatDuration(step)}
          problem={
            windowMs === undefined ? 'Enter a duration from 10ms to 366d, such as 30s or 2h.' : undefined
          }
          onStep={(step) => onChange({ ...numbers, window: formatDuration(step) })}
          onText={(text) => onChange({ ...numbers, window: text })}
        />
        <fieldset>
          <legend>Kinds</legend>
          {KIND_NAMES.map((kind) => (
            <label key={kind} class="choice">
              <input
                type="checkbox"
                checked={kinds.includes(kind)}
                onChange={({ currentTarget }) => {
                  const isWanted = (each: KindName) =>
                    each === kind ? currentTarget.checked : kinds.includes(each)
                  onChange({ ...numbers, kinds: KIND_NAMES.filter(isWanted) })
                }}
              />
              {KIND_LABELS[kind]}
            </label>
          ))}
        </fieldset>
      </div>
    </section>
  )
}

/** A slider for common numbers, and a field for any number. */
function Adjusted({
  label,
  steps,
  value,
  text,
  inWords,
  problem,
  onStep,
  onText,
}: {
  readonly label: string
  readonly steps: readonly number[]
  readonly value: number | undefined
  readonly text: string
  readonly inWords: (value: number) => string
  readonly problem: string | undefined
  readonly onStep: (step: number) => void
  readonly onText: (text: string) => void
}) {
  const id = useUniqueId()
  return (
    <div class="adjusted">
      <label for={id}>{label}</label>
      <input
        id={id}
        value={text}
        size={8}
        autocomplete="off"
        aria-invalid={problem !== undefined}
        aria-describedby={`${id}-problem`}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
      <input
        type="range"
        aria-label={`${label}, slider`}
        min={0}
        max={steps.length - 1}
        value={stepOf(steps, value ?? steps[0]!)}
        aria-valuetext={value === undefined ? 'none' : inWords(value)}
        onInput={({ currentTarget }) => onStep(steps[Number(currentTarget.value)]!)}
      />
      <p id={`${id}-problem`} class="denied" role="alert">
        {problem}
      </p>
    </div>
  )
}
