import { onTestFinished } from 'vitest'
import type { Server } from './suite.ts'

/** Starts a server for the running test. */
export async function temporary<S extends Server>(serving: Promise<S>): Promise<S> {
  const server = await serving
  onTestFinished(() => server.close())
  return server
}

/** Requests these paths one after the other and returns the statuses. */
export async function statuses(server: Server, paths: readonly string[]): Promise<number[]> {
  const answers: number[] = []
  for (const path of paths) answers.push((await fetch(`${server.url}${path}`)).status)
  return answers
}
