import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { browser, type Page } from '../support/browser.ts'
import { startHeddle } from '../support/heddle.ts'
import { SHIPPED } from '../support/shipped-domains.ts'
import { post } from '../support/system-domain.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./fixtures', import.meta.url))]
const REFUSED = 'Card issuer refused: insufficient funds (code 51)'

const search = async (page: Page, words: string): Promise<void> => {
  await page.keyboard.press('/')
  await page.keyboard.type(words)
  await page.keyboard.press('Enter')
}
const choose = (page: Page, text: string) => page.locator('.request-row', { hasText: text }).first().click()
const isShown = (page: Page, selector: string, text: string) =>
  page.locator(selector, { hasText: text }).first().waitFor()

test('the page tells why a request failed, what it did and caused, finds it, and still does after kill -9', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const folder = mkdtempSync(join(tmpdir(), 'heddle-history-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const env = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db'), REPLICA_ID: 'shop' }
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  await post(service, '/orders', { item: 'loom', quantity: 13 })
  await service.fetch('/orders/broken')
  const { headers } = await service.json('/orders/count')
  const id = headers.get('x-request-id')!

  const page = await chromium.newPage({ viewport: { width: 1440, height: 900 } })
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  await page.goto(`${service.url}/system/dashboard`)

  await t.test('why it failed, at which line, with the source around it: one click', async () => {
    await choose(page, REFUSED)
    await isShown(page, '.why', `shop.ChargeCard.charge failed 3 of 3 attempts: ${REFUSED} at`)
    await isShown(page, '.why', 'charge-card.ts:15:11')
    await isShown(page, '.source .is-fault', 'throw new Error(')
  })

  await t.test('which SQL it ran and for how long, what it caused and what it logged: the same view', async () => {
    await isShown(page, '.request-facts', '1 SQL')
    const row = page.locator('.fall-row', { hasText: 'INSERT INTO orders' })
    assert.match((await row.locator('.number').textContent())!, /\d (µs|ms)/)
    await isShown(page, '.fall-row', 'process order.placed')
    assert.equal(await page.locator('.fall-row.is-failed', { hasText: 'shop.ChargeCard.charge' }).count(), 4)
    await isShown(page, '.span-detail li', 'WARNING The card issuer did not answer')
  })

  await t.test('the address is a link to it, and a letter is replayed from there with its outcome', async () => {
    await page.locator('button', { hasText: 'Replay 1 dead letter' }).click()
    await page.locator('.fall-row.is-failed', { hasText: 'shop.ChargeCard.charge' }).nth(6).waitFor()
    const other = await chromium.newPage()
    await other.goto(page.url())
    await isShown(other, '.why', REFUSED)
    await other.close()
  })

  await t.test('a request is found by a text of its SQL, by status and route, and by its id', async () => {
    await search(page, 'status:5xx "SELECT missing"')
    await choose(page, '/orders/broken')
    await isShown(page, '.why', 'no such column: missing at')
    await isShown(page, '.source .is-fault', 'SELECT missing')
    await search(page, 'route:/orders/count status:200')
    await choose(page, '/orders/count')
    await search(page, id)
    await choose(page, '/orders/count')
    await isShown(page, '.request-facts', id)
    assert.equal(new URL(page.url()).pathname, `/system/dashboard/requests/${id}`)
  })

  await t.test('after kill -9 and a start the same page answers for what was before', async () => {
    await service.stop('SIGKILL')
    const next = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
    await page.goto(`${next.url}/system/dashboard/requests?q=${encodeURIComponent('status:failed')}`)
    await choose(page, REFUSED)
    await isShown(page, '.why', REFUSED)
    await isShown(page, '.fall-row', 'INSERT INTO orders')
  })
  assert.deepEqual(
    faults.filter((fault) => !/ERR_CONNECTION|Failed to load resource|net::/.test(fault)),
    [],
  )
})
