import base from './vitest.config.ts'
const c = base as any
for (const p of c.test.projects) p.test.setupFiles = ['./zz-cpu-setup.ts']
export default c
