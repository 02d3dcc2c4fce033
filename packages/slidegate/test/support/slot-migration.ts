import { ask } from './ask.ts'

interface Member {
  readonly id: string
  readonly port: number
}

/** A slot on its way from one master to another; meanwhile keys may be on either side. */
export interface OpenSlot {
  readonly slot: number
  /** Keys of the slot that the old master still has; at most 1000 are listed. */
  keysLeft(): Promise<string[]>
  /** Moves these keys, or so many of those that are left; answers how many were asked to move. */
  move(keys: number | readonly string[]): Promise<number>
  /** Hands the slot over. All its keys must have moved. */
  finish(): Promise<void>
  /** Brings back what has moved, and leaves the slot where it was. */
  cancel(): Promise<void>
}

/** Opens a slot as `redis-cli --cluster reshard` does: importing first, so that nobody is sent in vain. */
export async function openSlot(
  slot: number,
  from: Member,
  to: Member,
  masters: readonly Member[],
): Promise<OpenSlot> {
  await ask(to.port, 'CLUSTER', 'SETSLOT', slot, 'IMPORTING', from.id)
  await ask(from.port, 'CLUSTER', 'SETSLOT', slot, 'MIGRATING', to.id)

  const keysOn = async ({ port }: Member, count: number) =>
    (await ask(port, 'CLUSTER', 'GETKEYSINSLOT', slot, count)) as string[]

  async function migrate(source: Member, target: Member, keys: readonly string[], ...flags: string[]) {
    if (keys.length === 0) return
    await ask(source.port, 'MIGRATE', '127.0.0.1', target.port, '', 0, 5000, ...flags, 'KEYS', ...keys)
  }

  return {
    slot,
    keysLeft: () => keysOn(from, 1000),
    async move(which) {
      const keys = typeof which === 'number' ? await keysOn(from, which) : which
      await migrate(from, to, keys)
      return keys.length
    },
    async finish() {
      // The new owner first: it must not be without one, and it is he who tells the others.
      for (const { port } of [to, from, ...masters.filter(({ id }) => id !== to.id && id !== from.id)]) {
        await ask(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', to.id)
      }
    },
    async cancel() {
      // While it is open the old master takes back nothing that it has not. Keys that have moved seem to be gone until
      // they are back; what was written in their place meanwhile is lost.
      await ask(from.port, 'CLUSTER', 'SETSLOT', slot, 'STABLE')
      for (;;) {
        const keys = await keysOn(to, 1000)
        if (keys.length === 0) break
        await migrate(to, from, keys, 'REPLACE')
      }
      await ask(to.port, 'CLUSTER', 'SETSLOT', slot, 'STABLE')
    },
  }
}
