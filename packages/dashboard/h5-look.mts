import { testBrowser } from './test/support/browser.ts'
import { testService } from '../server/test/support/service.ts'
import { LIMITERS } from './test/support/limiters.ts'
const service = await testService({ limiters: LIMITERS } as never)
const browser = await testBrowser()
for (const [name, size, theme] of [['desk',{width:1280,height:800},'light'],['dark',{width:1280,height:800},'dark'],['phone',{width:390,height:844},'light']] as const){
 const w = await browser.open(service.httpUrl, { at: '/simulator', size, theme })
 const { page } = w
 await page.getByRole('button',{name:'Load the sample'}).click()
 await page.getByRole('table',{name:'The kinds compared'}).waitFor()
 await page.waitForTimeout(1200)
 await page.screenshot({ path: `/tmp/h5-shots/${name}.png`, fullPage: true })
 console.log(name, await page.getByRole('status').allInnerTexts(), w.errors, await page.evaluate('document.documentElement.scrollWidth'))
 await w[Symbol.asyncDispose]().catch(e=>console.log(String(e).slice(0,500)))
}
await browser[Symbol.asyncDispose](); await service[Symbol.asyncDispose]()
process.exit(0)
