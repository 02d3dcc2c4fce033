// The command slidegate demo: what a fixed and a sliding window let through at the edge of a window.

import { stripVTControlCharacters } from 'node:util'
import { Chartscii } from 'chartscii'
import { fixedWindow, type Limit, slidingWindow } from 'slidegate'
import { formatPercent } from '../text.ts'
import { measureBoundaryBurst } from './boundary-burst.ts'

const LIMIT = { limit: 100, window: '3s' }

/** How long before the edge the first burst begins; with each further attempt a slow machine gets more time. */
const LEADS_MS = [400, 800, 1500]

export async function runDemo(): Promise<void> {
  say(
    `The limit is ${LIMIT.limit} requests per ${LIMIT.window}. A real Express server is sent ${LIMIT.limit} requests just`,
  )
  say(`before the edge of a window and ${LIMIT.limit} just after; the clock is the real one.\n`)
  const fixed = await measure('fixed window', fixedWindow(LIMIT))
  const sliding = await measure('sliding window', slidingWindow(LIMIT))

  say(`\nLet through within the fullest ${LIMIT.window}:`)
  const bars = [
    { label: 'fixed window', value: fixed, color: 'red' },
    { label: 'sliding window', value: sliding, color: 'green' },
  ] as const
  say(barChart(bars, LIMIT.limit, hasColors()))

  if (fixed !== 2 * LIMIT.limit || sliding !== LIMIT.limit) {
    throw new Error(
      `expected ${2 * LIMIT.limit} and ${LIMIT.limit} let through, measured ${fixed} and ${sliding}`,
    )
  }
}

/** How many requests the fullest window held; measured again if the machine was too slow to place the bursts. */
async function measure(label: string, limit: Limit): Promise<number> {
  for (const leadMs of LEADS_MS) {
    say(`${label}: waiting for the edge of a window ...`)
    const { fullestWindow, inPlace } = await measureBoundaryBurst(limit, leadMs)
    if (inPlace) return fullestWindow
    say(`${label}: this machine was too slow to send ${LIMIT.limit} requests within ${leadMs} ms of the edge`)
  }
  throw new Error(`this machine was too slow, ${LEADS_MS.length} times, to send two bursts within one window`)
}

function hasColors(): boolean {
  // Knows NO_COLOR and what the terminal can do.
  return process.stdout.isTTY && process.stdout.hasColors()
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

interface Bar {
  readonly label: string
  readonly value: number
  readonly color: 'red' | 'green'
}

/** Horizontal bars, each with its value as a share of `whole`. */
export function barChart(bars: readonly Bar[], whole: number, withColor: boolean): string {
  const chart = new Chartscii([...bars], {
    width: 40,
    barSize: 1,
    height: bars.length,
    valueLabels: true,
    valueLabelFormat: ([value]) => `${value} of ${whole} = ${formatPercent(Number(value), whole)}`,
  })
  // The chart has escape sequences even where no colour was asked for.
  const text = chart.create()
  return withColor ? text : stripVTControlCharacters(text)
}
