import { MAX_WINDOW_MS } from '../duration.ts'
import type { Kind, LogParams, Logs, Note, Notes } from './limit.ts'
import type { ExtraLog } from './limit-set.ts'
import { ObjectLogs } from './object-logs.ts'

/** Notes that a table holds at most. */
export const MAX_NOTES = 10_000

/** Changes that a table remembers: who has missed more is told all. */
const MAX_CHANGES = 256

/** Notes and characters of a page, as of the Lua. */
const PAGE_NOTES = 250
const PAGE_CHARACTERS = 2 ** 16

interface WrittenNote {
  /** Rises with each note that is written, in the order of the map. */
  readonly number: number
  readonly writtenAtMs: number
  /** By the store's clock; 0 for never. */
  readonly expiresAtMs: number
  readonly text: string
}

interface NoteTable {
  /** Rises with each change, and is never below the time of the last one: one that was lost does not come again. */
  version: number
  /** Who knows only of an earlier version is told all. */
  floor: number
  /** Notes that were ever written. */
  written: number
  /** The length of all texts. */
  characters: number
  notes: Map<string, WrittenNote>
  /** The last changes, oldest first. */
  changes: Change[]
}

interface Change {
  /** That which the table had by it. */
  readonly version: number
  readonly name: string
}

/** Bytes of a note besides its text. */
const NOTE_BYTES = 256

const newTables = (): Logs<NoteTable> =>
  new ObjectLogs<NoteTable>(
    newTable,
    (table) => ({ ...table, notes: new Map(table.notes), changes: table.changes.slice() }),
    ({ notes, changes, characters }) => NOTE_BYTES * (1 + notes.size + changes.length) + characters,
  )

function newTable(): NoteTable {
  return { version: 0, floor: 0, written: 0, characters: 0, notes: new Map(), changes: [] }
}

const PARAMS: LogParams = { precision: 1, records: 1, windows: [MAX_WINDOW_MS], limits: [1] }

/** A table of texts by name, of which processes read what was changed since they last did. No limit. */
const notesKind: Kind<NoteTable> = {
  tag: 'n',

  logName: () => 'n',

  params: () => PARAMS,

  createLogs: newTables,

  newest: () => 0,

  restamp() {},

  // Full from the first note on, so that a store in this process never drops it to make room.
  check(table, _params, _nowMs, used) {
    used[0] = table.version > 0 ? 1 : 0
  },

  commit() {},

  retryAfter: () => MAX_WINDOW_MS,

  resetAfter: () => 0,

  refund: () => 0,

  expiresAt: ({ version }) => (version > 0 ? Number.MAX_SAFE_INTEGER : 0),

  table: {
    write(table, _params, nowMs, { name, text, ttlMs }, since) {
      const { notes, changes } = table
      if (since !== undefined && isWrittenSince(table, name, since)) return { noted: false, isStale: true }
      const isKnown = notes.has(name)
      if (text === undefined && !isKnown) return { noted: true }
      const version = Math.max(table.version + 1, nowMs)
      if (!isKnown && notes.size >= MAX_NOTES) {
        if (!sweep(table, nowMs)) return { noted: false }
        table.floor = version
      }
      // Who knows of a table that was lost is told all.
      if (table.version === 0) table.floor = version
      table.version = version
      if (changes.push({ version, name }) > MAX_CHANGES) {
        table.floor = Math.max(table.floor, changes.shift()!.version)
      }
      forget(table, name)
      if (text !== undefined) {
        table.characters += text.length
        const expiresAtMs = ttlMs > 0 ? nowMs + ttlMs : 0
        notes.set(name, { number: ++table.written, writtenAtMs: nowMs, expiresAtMs, text })
      }
      return { noted: true }
    },

    read(table, _params, nowMs, since, from) {
      const changes = from === undefined ? changesSince(table, since) : undefined
      if (changes === undefined) return pageOfAll(table, nowMs, Number(from ?? 0))
      return pageOfChanges(table, nowMs, changes)
    },
  },
}

/** @param after the number of the last note of the page before */
function pageOfAll({ version, notes }: NoteTable, nowMs: number, after: number): Notes {
  const read: Note[] = []
  const page = { version, isAll: true, notes: read, size: notes.size }
  let last = after
  let characters = 0
  for (const [name, note] of notes) {
    if (note.number <= after) continue
    if (read.length === PAGE_NOTES || characters >= PAGE_CHARACTERS) {
      return { ...page, next: { since: 0, from: `${last}` } }
    }
    read.push(asRead(name, note, nowMs))
    characters += note.text.length
    last = note.number
  }
  return page
}

function pageOfChanges({ version, notes }: NoteTable, nowMs: number, changes: readonly Change[]): Notes {
  const read = new Map<string, Note>()
  let last = version
  let characters = 0
  for (const change of changes) {
    if (characters >= PAGE_CHARACTERS) {
      return { version: last, isAll: false, notes: Array.from(read.values()), next: { since: last } }
    }
    last = change.version
    if (read.has(change.name)) continue
    const note = asRead(change.name, notes.get(change.name), nowMs)
    read.set(change.name, note)
    characters += note.text?.length ?? 0
  }
  return { version, isAll: false, notes: Array.from(read.values()) }
}

/** The log of a set that is a table. */
export const notesLog: ExtraLog = {
  name: 'n',
  kind: notesKind,
  role: 'table',
  params: PARAMS,
}

/** None where it is no version that is remembered: another history may have led to it. */
function changesSince({ version, floor, changes }: NoteTable, since: number): readonly Change[] | undefined {
  if (since === version) return []
  if (since === 0 || since < floor || since > version) return undefined
  const isKnown = since === floor || changes.some((change) => change.version === since)
  return isKnown ? changes.filter((change) => change.version > since) : undefined
}

/** Whether a note may have been written since a version. */
function isWrittenSince(table: NoteTable, name: string, since: number): boolean {
  return changesSince(table, since)?.some((change) => change.name === name) ?? true
}

function asRead(name: string, note: WrittenNote | undefined, nowMs: number): Note {
  if (note === undefined || isExpired(note, nowMs)) return { name, ttlMs: 0, ageMs: 0 }
  const { writtenAtMs, expiresAtMs, text } = note
  const ttlMs = expiresAtMs === 0 ? 0 : expiresAtMs - nowMs
  return { name, text, ttlMs, ageMs: Math.max(0, nowMs - writtenAtMs) }
}

function isExpired({ expiresAtMs }: WrittenNote, nowMs: number): boolean {
  return expiresAtMs > 0 && expiresAtMs <= nowMs
}

/** Forgets the notes that have expired; answers whether there were any. */
function sweep(table: NoteTable, nowMs: number): boolean {
  const { size } = table.notes
  for (const [name, note] of table.notes) if (isExpired(note, nowMs)) forget(table, name)
  return table.notes.size < size
}

function forget(table: NoteTable, name: string): void {
  table.characters -= table.notes.get(name)?.text.length ?? 0
  table.notes.delete(name)
}
