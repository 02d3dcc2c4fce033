// Unique ids for elements.

import { useState } from 'preact/hooks'

let count = 0

/** Returns an id that no other element has. Preact's `useId` repeats ids in dialogs that open later. */
export function useUniqueId(): string {
  return useState(() => `id-${count++}`)[0]
}
