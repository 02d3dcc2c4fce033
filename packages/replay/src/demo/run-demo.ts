// slidegate demo: compares how many requests a fixed and a sliding window admit around a boundary.

import { stripVTControlCharacters } from 'node:util'
import { Chartscii } from 'chartscii'
import { fixedWindow, type Limit, slidingWindow } from 'slidegate'
import { formatPercent } from '../text.ts'
import { measureBoundaryBurst } from './boundary-burst.ts'

const LIMIT = { limit: 100, window: '3s' } as const

/** Time from the start of the first burst to the boundary. Each retry gives a slow machine more time. */
const LEADS_MS = [400, 800, 1500]

export async function runDemo(): Promise<void> {
  say(
    `The limit is ${LIMIT.limit} requests per ${LIMIT.window}. The demo sends ${LIMIT.limit} requests to a real Express server`,
  )
  say(`just before a window boundary and ${LIMIT.limit} just after it, in real time.\n`)
  const fixed = await measure('fixed window', fixedWindow(LIMIT))
  const sliding = await measure('sliding window', slidingWindow(LIMIT))

  say(`\nHighest number of requests admitted within ${LIMIT.window}:`)
  const bars = [
    { label: 'fixed window', value: fixed, color: 'red' },
    { label: 'sliding window', value: sliding, color: 'green' },
  ] as const
  say(barChart(bars, LIMIT.limit, hasColors()))

  if (fixed !== 2 * LIMIT.limit || sliding !== LIMIT.limit) {
    throw new Error(
      `expected ${2 * LIMIT.limit} admissions in a fixed window and ${LIMIT.limit} in a sliding window, but measured ${fixed} and ${sliding}`,
    )
  }
}

/** Returns the number of requests in the fullest window. Retries if the machine was too slow to send the bursts in time. */
async function measure(label: string, limit: Limit): Promise<number> {
  for (const leadMs of LEADS_MS) {
    say(`${label}: waiting for a window boundary ...`)
    const { fullestWindow, inPlace } = await measureBoundaryBurst(limit, leadMs)
    if (inPlace) return fullestWindow
    say(
      `${label}: this machine was too slow to send ${LIMIT.limit} requests within ${leadMs} ms of the boundary`,
    )
  }
  throw new Error(
    `in ${LEADS_MS.length} attempts, this machine was too slow to send two bursts within one window`,
  )
}

function hasColors(): boolean {
  // Respects NO_COLOR and the capabilities of the terminal.
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

/** Draws horizontal bars, and shows each bar's share of `whole`. */
export function barChart(bars: readonly Bar[], whole: number, withColor: boolean): string {
  const chart = new Chartscii([...bars], {
    width: 40,
    barSize: 1,
    height: bars.length,
    valueLabels: true,
    valueLabelFormat: ([value]) => `${value} of ${whole} = ${formatPercent(Number(value), whole)}`,
  })
  // Chartscii always adds escape sequences.
  const text = chart.create()
  return withColor ? text : stripVTControlCharacters(text)
}
