import cluster from 'node:cluster'
import { createHmac, randomBytes } from 'node:crypto'

const VARIABLE = 'SLIDEGATE_INSTANCE_SECRET'

/** Drawn anew by each instance, so that its workers spell a key alike in what they write, and nobody can guess it. */
export const INSTANCE_SECRET: string =
  (cluster.isWorker ? process.env[VARIABLE] : undefined) ?? randomBytes(32).toString('base64url')

/** The token of the admin link. Each start makes another one, which all workers know. */
export const ADMIN_TOKEN: string = createHmac('sha256', INSTANCE_SECRET)
  .update('admin link')
  .digest('base64url')

/** What workers have to find in their environment. */
export const SECRET_OF_WORKERS: Readonly<Record<string, string>> = { [VARIABLE]: INSTANCE_SECRET }
