import { testBrowser } from './test/support/browser.ts'
import { testService } from '../server/test/support/service.ts'
import { LIMITERS } from './test/support/limiters.ts'
const service = await testService({ limiters: LIMITERS } as never)
const browser = await testBrowser()
const w = await browser.open(service.httpUrl, { at: '/simulator' }); const { page } = w
await w.watchLongTasks()
let t = performance.now(); await page.getByLabel(/An access log/).setInputFiles('/tmp/h5-1m.log'); await page.getByText('1,000,000 requests of').waitFor({timeout:120000}); console.log('read ms', (performance.now()-t).toFixed())
const done=async()=>{await page.getByRole('progressbar',{name:'Simulating'}).waitFor({state:'detached',timeout:60000})}
await page.getByRole('table',{name:'The kinds compared'}).waitFor({timeout:60000})
for (const l of ['10','20','40']) { t=performance.now(); await page.getByLabel('Requests',{exact:true}).fill(l); await page.getByRole('heading',{name:`${l} per 1m, by each kind`}).waitFor({timeout:60000}); console.log('simulate 3 kinds ms',(performance.now()-t).toFixed()) }
await page.getByRole('button',{name:'Load the sample'}).click(); await page.getByText('47,977 requests').waitFor(); await page.waitForTimeout(1500)
for (const l of ['50','60','70']) { t=performance.now(); await page.getByLabel('Requests',{exact:true}).fill(l); await page.getByRole('heading',{name:`${l} per 1m, by each kind`}).waitFor(); console.log('sample, 3 kinds ms',(performance.now()-t).toFixed()) }
console.log('longest task', await w.longestTaskMs(), w.errors); await done()
await w[Symbol.asyncDispose]().catch(String); await browser[Symbol.asyncDispose](); process.exit(0)
