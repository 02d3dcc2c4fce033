import { appendFileSync, readFileSync } from 'node:fs'
import { afterAll, expect } from 'vitest'
const read = () => { const own = process.cpuUsage(); const f = readFileSync('/proc/self/stat','utf8').split(') ')[1]!.split(' '); return { own: (own.user+own.system)/1e6, kids: (Number(f[13])+Number(f[14]))/100 } }
const g = globalThis as any
const before = g.__cpuLast ?? { own: 0, kids: 0 }
const t0 = performance.now()
afterAll(() => { const now = read(); g.__cpuLast = now; appendFileSync('/tmp/w/cpu.tsv', [expect.getState().testPath, (now.own-before.own).toFixed(2), (now.kids-before.kids).toFixed(2), ((performance.now()-t0)/1000).toFixed(1)].join('\t')+'\n') })
