// A text field that shows a problem with its value.

import { useUniqueId } from './unique-id.ts'

export function Field({
  label,
  value,
  onInput,
  problem,
  hint,
  size,
  maxLength,
  placeholder,
  isNumber = false,
}: {
  readonly label: string
  readonly value: string
  readonly onInput: (text: string) => void
  /** The problem with the text. */
  readonly problem: string | undefined
  /** Shown while there is no problem. */
  readonly hint?: string
  readonly size?: number
  readonly maxLength?: number
  readonly placeholder?: string
  readonly isNumber?: boolean
}) {
  const id = useUniqueId()
  const note = problem ?? hint
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        id={id}
        type="text"
        autocomplete="off"
        inputMode={isNumber ? 'numeric' : 'text'}
        value={value}
        onInput={(event) => onInput(event.currentTarget.value)}
        aria-invalid={problem !== undefined}
        {...{ size, maxLength, placeholder }}
        {...(note !== undefined && { 'aria-describedby': `${id}-note` })}
      />
      {note !== undefined && (
        <span id={`${id}-note`} class={problem === undefined ? 'field-hint' : 'field-hint denied'}>
          {note}
        </span>
      )}
    </div>
  )
}

/** The problem with a duration, if any. Empty text is valid. */
export function durationProblem(text: string): string | undefined {
  if (text.trim() === '' || /^[0-9]{1,15}(ms|s|m|h|d)$/.test(text.trim())) return undefined
  const words =
    /^(\d+)\s*(?:(ms)|(s)(?:ec(?:ond)?s?)?|(m)(?:in(?:ute)?s?)?|(h)(?:ours?)?|(d)(?:ays?)?)$/i.exec(
      text.trim(),
    )
  const example = words?.slice(1).join('').toLowerCase() ?? '30s, 10m, 12h or 7d'
  return `“${text.trim()}” isn’t a duration. Write a number and a unit: ${example}.`
}

/** The problem with a whole number, if any. Empty text is valid. */
export function numberProblem(text: string): string | undefined {
  if (text.trim() === '' || /^[1-9][0-9]{0,14}$/.test(text.trim())) return undefined
  return `“${text.trim()}” isn’t a positive whole number. Example: 300.`
}
