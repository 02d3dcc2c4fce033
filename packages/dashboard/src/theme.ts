// The light or dark theme, and colors for canvases.

import { useEffect, useState } from 'preact/hooks'

export type Theme = 'system' | 'light' | 'dark'

const KEPT = 'slidegate.theme'
const CHANGED = 'slidegate:theme'

export function keptTheme(): Theme {
  const kept = localStorage.getItem(KEPT)
  return kept === 'light' || kept === 'dark' ? kept : 'system'
}

/** Applies the theme and stores the choice. */
export function setTheme(theme: Theme): void {
  if (theme === 'system') {
    localStorage.removeItem(KEPT)
    delete document.documentElement.dataset.theme
  } else {
    localStorage.setItem(KEPT, theme)
    document.documentElement.dataset.theme = theme
  }
  dispatchEvent(new Event(CHANGED))
}

/** Returns a number that changes with the colors, so that canvases are redrawn. */
export function useColors(): number {
  const [turn, setTurn] = useState(0)
  useEffect(() => {
    const again = (): void => setTurn((last) => last + 1)
    const system = matchMedia('(prefers-color-scheme: dark)')
    system.addEventListener('change', again)
    addEventListener(CHANGED, again)
    return () => {
      system.removeEventListener('change', again)
      removeEventListener(CHANGED, again)
    }
  }, [])
  return turn
}

/** Resolves a custom property to a color for a canvas. */
export function colorOf(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`
  const { color } = getComputedStyle(element)
  element.style.color = ''
  return color
}
