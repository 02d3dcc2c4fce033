// The search field in the header: finds a key in all limiters.

import { useEffect, useRef, useState } from 'preact/hooks'
import { findHref } from '../routes.ts'

export function FindField() {
  const [key, setKey] = useState('')
  const field = useRef<HTMLInputElement>(null)
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (!isShortcut(event)) return
      event.preventDefault()
      field.current?.focus()
      field.current?.select()
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [])
  const go = (event: Event): void => {
    event.preventDefault()
    if (key === '') return
    location.hash = findHref(key)
    setKey('')
  }
  return (
    <search class="find" aria-label="Find a key">
      <form onSubmit={go}>
        <input
          ref={field}
          type="search"
          enterkeyhint="search"
          aria-label="Find a key in all limiters"
          aria-keyshortcuts="/ Control+K Meta+K"
          placeholder="Find a key (press /)"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          value={key}
          onInput={(event) => setKey(event.currentTarget.value)}
        />
      </form>
    </search>
  )
}

/** Whether a key press is a shortcut: `/` outside of fields, Ctrl+K or Cmd+K anywhere. */
function isShortcut({ key, ctrlKey, metaKey, altKey, shiftKey, target }: KeyboardEvent): boolean {
  if (altKey) return false
  if (key.toLowerCase() === 'k') return !shiftKey && ctrlKey !== metaKey
  const isTyping = target instanceof Element && target.closest('input, textarea, select') !== null
  return key === '/' && !ctrlKey && !metaKey && !isTyping
}
