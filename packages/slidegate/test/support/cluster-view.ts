import { askText } from './ask.ts'

/** One line of `CLUSTER NODES`. */
export interface NodeLine {
  readonly id: string
  readonly port: number
  readonly flags: readonly string[]
  /** The master's id, if this node is a replica. */
  readonly masterId: string | undefined
  readonly epoch: number
  /** First and last slot of each range. */
  readonly slots: readonly (readonly [number, number])[]
}

/** Returns the cluster as the node on this port sees it. */
export async function askView(port: number): Promise<NodeLine[]> {
  const text = await askText(port, 'CLUSTER', 'NODES')
  return text.trim().split('\n').map(parse)
}

/** Parses `<id> <ip:port@bus[,host]> <flags> <master> <ping> <pong> <epoch> <link> <slot> ...`. */
function parse(line: string): NodeLine {
  const [id = '', address = '', flags = '', master = '-', , , epoch = '0', , ...slots] = line.split(' ')
  return {
    id,
    port: Number(/:(\d+)/.exec(address)?.[1]),
    flags: flags.split(','),
    masterId: master === '-' ? undefined : master,
    epoch: Number(epoch),
    // Slots in brackets are being migrated, and are also listed among the others.
    slots: slots.filter((range) => !range.startsWith('[')).map(parseRange),
  }
}

function parseRange(range: string): [number, number] {
  const [first, last = first] = range.split('-').map(Number)
  return [first!, last!]
}

export function isMaster({ flags, slots }: NodeLine): boolean {
  return flags.includes('master') && !flags.includes('fail') && slots.length > 0
}

export function hasSlot({ slots }: NodeLine, slot: number): boolean {
  return slots.some(([first, last]) => first <= slot && slot <= last)
}

/** Returns the roles of all nodes and their slots, as text. All nodes must agree on it. */
export function rolesOf(view: readonly NodeLine[]): string {
  const roles = view.map(({ id, flags, masterId, slots }) => {
    const standing = flags.filter((flag) => flag !== 'myself').join(',')
    return `${id} ${standing} ${masterId} ${slots.join(' ')}`
  })
  return roles.sort().join('\n')
}
