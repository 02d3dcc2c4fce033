import cluster from 'node:cluster'
import { randomBytes } from 'node:crypto'

const VARIABLE = 'SLIDEGATE_INSTANCE_SECRET'

/** Drawn anew by each instance, so that its workers spell a key alike in what they write, and nobody can guess it. */
export const INSTANCE_SECRET: string =
  (cluster.isWorker ? process.env[VARIABLE] : undefined) ?? randomBytes(32).toString('base64url')

/** What workers have to find in their environment. */
export const SECRET_OF_WORKERS: Readonly<Record<string, string>> = { [VARIABLE]: INSTANCE_SECRET }
