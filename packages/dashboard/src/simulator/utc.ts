/** `2026-01-05 09:39:59`; logs of several machines agree in UTC, so that is what the simulator writes. */
export function utc(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replace('T', ' ')
}
