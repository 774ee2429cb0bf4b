import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browser, type Page } from '../../support/browser.ts'
import { until } from '../../support/until.ts'
import { startBakery, times } from './bakery.ts'

const tile = (page: Page, label: string) => page.locator('.figure', { hasText: label })
const value = async (page: Page, label: string): Promise<string> =>
  (await tile(page, label).locator('strong').textContent())!

test('the tiles count what fails, with and without a history, and lead to it', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const { service } = await startBakery(t, { HISTORY_ENABLED: 'false' })
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 } })
  await page.addInitScript(`
    globalThis.seen = new Set()
    new MutationObserver(() => {
      const lanes = [...document.querySelectorAll('.figure')].find((each) => each.textContent.includes('Lanes'))
      if (lanes) seen.add(lanes.querySelector('strong').textContent)
    }).observe(document, { subtree: true, childList: true, characterData: true })`)
  await page.goto(`${service.url}/system/dashboard`)
  await page.locator('#link[data-state="live"]').waitFor()
  await until(async () => (await value(page, 'Failed')) === '0', 'no failure')

  await t.test('lanes that are up are shown as ready from the first moment on', async () => {
    assert.deepEqual(await page.evaluate('[...seen]'), ['–', '2 of 2'])
  })

  await t.test('twenty answers of 500 are seen', async () => {
    await times(20, () => service.fetch('/burnt'))
    await until(async () => (await value(page, 'Failed')) === '20', 'twenty failures')
    assert.equal(await tile(page, 'Failed').getAttribute('data-state'), 'bad')
    assert.equal(await tile(page, 'Failed').locator('small').textContent(), '20 requests')
    assert.match((await tile(page, 'Requests a second').locator('small').textContent())!, /^20 in (a minute|\d+ s)$/)
    assert.match(await value(page, 'p95'), /\d (µs|ms|s)$/)
  })

  await t.test('a lane that died is one failure more, beside its request', async () => {
    await service.fetch('/oven').catch(() => {})
    await until(
      async () => (await tile(page, 'Failed').locator('small').textContent()) === '21 requests · 1 lane died',
      'the death',
    )
  })

  await t.test('a tile leads to what it counts', async () => {
    await tile(page, 'Lanes').click()
    await page.locator('.lanes').waitFor()
    const { library } = (await service.json('/system/status')).body.listener
    await page.locator('.lane', { hasText: `HTTP is served by ${library}` }).waitFor()
    await tile(page, 'Failed').click()
    await page.locator('.view.requests').waitFor()
    assert.equal(new URL(page.url()).searchParams.get('q'), 'status:failed')
  })
})

test('what failed in the last minute is counted when the page is opened later', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const { service } = await startBakery(t, { HISTORY_ENABLED: 'true' })
  await times(20, () => service.fetch('/burnt'))
  const page = await chromium.newPage({ viewport: { width: 1280, height: 800 } })
  await page.goto(`${service.url}/system/dashboard`)
  await until(async () => (await value(page, 'Failed')) === '20', 'twenty failures')
})
