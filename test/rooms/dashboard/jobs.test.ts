import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browser } from '../../support/browser.ts'
import { folderOf } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const JOBS = `import { plugin } from '#heddle'
export default plugin(({ scheduler, logger }) => {
  scheduler.cron('nightly', '0 3 * * *', () => {
    logger.info('All loaves are counted')
    logger.warning('One is missing')
  }, { timeZone: 'Europe/Vienna' })
  scheduler.cron('second', '* * * * * *', () => {})
  scheduler.every('broken', 3_600_000, () => { throw new Error('no flour') })
})
`
const OUTSIDE = `[...document.querySelectorAll('td, th')].filter((cell) => cell.getBoundingClientRect().right > innerWidth).length`

test('the page shows when jobs run next, runs one now, and shows what it has logged', {
  timeout: 120_000,
}, async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const folder = await folderOf(t, { 'bakery/plugins/count-loaves.ts': JOBS })
  const heddle = await startHeddle(t, { domains: [SHIPPED, folder], lanes: 1, env: { HISTORY_ENABLED: 'true' } })
  const page = await chromium.newPage()
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(error.stack || String(error)))
  await page.goto(`${heddle.url}/system/dashboard#jobs`)
  const row = (name: string) => page.locator('.view.jobs tbody tr', { hasText: name })

  await row('nightly').getByText('0 3 * * * Europe/Vienna').waitFor()
  await row('second')
    .getByText(/3,[56]\d\d in the next hour/)
    .waitFor()
  await row('second')
    .getByText(/done in/)
    .waitFor()

  // By keyboard, and asked once.
  await row('nightly').locator('button').focus()
  await page.keyboard.press('Enter')
  await row('nightly').getByText('Run it now?').waitFor()
  await page.keyboard.press('Enter')
  await page.getByText(/bakery\.CountLoaves\/nightly: begun in process/).waitFor()
  await row('nightly')
    .getByText(/done in/)
    .waitFor()

  await row('nightly').locator('a').click()
  const detail = page.locator('.job-detail')
  await detail.getByText('asked for by anyone from 127.0.0.1').waitFor()
  await detail.getByText('One is missing').waitFor()
  assert.match(page.url(), /job=bakery\.CountLoaves%2Fnightly#jobs$/)
  await detail.getByText('all that it did').click()
  await page.waitForURL(/requests\/job_/)

  await page.goto(`${heddle.url}/system/dashboard?job=bakery.CountLoaves%2Fbroken#jobs`)
  await row('broken').locator('button').click()
  await row('broken').locator('button').click()
  await detail.getByText('no flour').waitFor()

  await page.setViewportSize({ width: 400, height: 800 })
  assert.equal(await page.evaluate(OUTSIDE), 0)
  assert.deepEqual(complaints, [])
})
