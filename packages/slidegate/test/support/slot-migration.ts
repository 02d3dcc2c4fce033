import { ask } from './ask.ts'

interface Member {
  readonly id: string
  readonly port: number
}

/** A slot that is being migrated between masters. Its keys may be on either side. */
export interface OpenSlot {
  readonly slot: number
  /** Keys of the slot that are still on the old master, up to 1000. */
  keysLeft(): Promise<string[]>
  /** Moves these keys, or this number of the remaining ones. Returns how many it tried to move. */
  move(keys: number | readonly string[]): Promise<number>
  /** Assigns the slot to the new master. All its keys must have moved. */
  finish(): Promise<void>
  /** Moves migrated keys back, and leaves the slot on the old master. */
  cancel(): Promise<void>
}

/** Opens a slot as `redis-cli --cluster reshard` does: `IMPORTING` first, so that no redirect fails. */
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
      // Updates the new owner first: the slot must never be without an owner, and the new owner announces the change.
      for (const { port } of [to, from, ...masters.filter(({ id }) => id !== to.id && id !== from.id)]) {
        await ask(port, 'CLUSTER', 'SETSLOT', slot, 'NODE', to.id)
      }
    },
    async cancel() {
      // While the slot is open, the old master accepts only keys that it still has. Migrated keys seem to be gone
      // until they are back, and anything written in their place meanwhile is lost.
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
