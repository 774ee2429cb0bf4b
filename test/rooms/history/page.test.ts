import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { browser, type Page } from '../../support/browser.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { type Heddle, startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { keepPicture } from '../apidocs/api-page.ts'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const FIXTURES = fileURLToPath(new URL('./fixtures', import.meta.url))
const DOMAINS = [SHIPPED, FIXTURES]
const REFUSED = 'Card issuer refused: insufficient funds (code 51)'

const search = async (page: Page, words: string): Promise<void> => {
  await page.keyboard.press('/')
  await page.keyboard.type(words)
  await page.keyboard.press('Enter')
}
const rowWith = (page: Page, text: string) => page.locator('.request-row', { hasText: text }).first()
const choose = (page: Page, text: string) => rowWith(page, text).click()
const isShown = (page: Page, selector: string, text: string) =>
  page.locator(selector, { hasText: text }).first().waitFor()
const button = (page: Page, text: string) => page.locator('.request-buttons button', { hasText: text })
/** What a button copies. That it says so is over after a moment, however late somebody looks. */
const copiedBy = async (page: Page, copy: () => Promise<void>): Promise<string> => {
  await page.evaluate("navigator.clipboard.writeText('')")
  await copy()
  const text = () => page.evaluate<string>('navigator.clipboard.readText()')
  await until(async () => (await text()) !== '', 'it is copied')
  return text()
}
const idOf = (page: Page) => new URL(page.url()).pathname.split('/').at(-1)!

test('the page of requests, in a real browser', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const folder = temporaryFolder(t)
  const env = {
    HISTORY_ENABLED: 'true',
    HISTORY_PATH: join(folder, 'history.db'),
    REPLICA_ID: 'shop',
    HEDDLE_RELEASE: 'first',
  }
  let next: Heddle
  const service = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  await service.post('/orders', { item: 'loom', quantity: 13 })
  await service.post('/orders', { item: "Anna's loom", quantity: 2 })
  await service.fetch('/orders/broken')
  await service.fetch('/orders/count')
  const { headers } = await service.json('/orders/count')
  const id = headers.get('x-request-id')!

  const context = await chromium.newContext({
    viewport: { width: 1440, height: 900 },
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  await page.goto(`${service.url}/system/dashboard`)

  await t.test('failures stay on top until they are looked at, and what comes by the clock is one line', async () => {
    await page.locator('.pinned .request-row', { hasText: REFUSED }).waitFor()
    await page.locator('.pinned .request-row', { hasText: '/orders/broken' }).waitFor()
    await isShown(page, '.noise', 'shop.TidyOrders/tidy ×')
    assert.equal(await page.locator('.request-row', { hasText: 'TidyOrders' }).count(), 0)
    await page.locator('.row-bar .segment-store').first().waitFor({ state: 'attached' })
    await keepPicture(page, 'requests-list')
  })

  await t.test('why it failed, at which line, with the source around it: one click', async () => {
    await choose(page, REFUSED)
    await isShown(page, '.why', `shop.ChargeCard.charge failed 3 of 3 attempts: ${REFUSED} at`)
    await isShown(page, '.why', 'charge-card.ts:9:11')
    await isShown(page, '.source .is-fault', 'throw new Error(')
    const editor = await page.locator('.why .editor').getAttribute('href')
    assert.equal(editor, `vscode://file${join(FIXTURES, 'shop/plugins/charge-card.ts')}:9:11`)
    await keepPicture(page, 'requests-why')
  })

  await t.test('which SQL it ran and for how long, what it caused and what it logged: the same view', async () => {
    await isShown(page, '.request-facts', '1 SQL')
    const row = page.locator('.fall-row', { hasText: 'INSERT INTO orders' })
    assert.match((await row.locator('.number').textContent())!, /\d (µs|ms)/)
    await isShown(page, '.fall-row', 'process order.placed')
    assert.equal(await page.locator('.fall-row.is-failed', { hasText: 'shop.ChargeCard.charge' }).count(), 4)
    assert.equal(await page.locator('.fall-row .bar-wait').count(), 2, 'the waits between three attempts')
    assert.equal(await page.locator('.fall-row', { hasText: 'process' }).locator('[data-thread="primary"]').count(), 1)
    assert.ok((await page.locator('.fall-thread[data-thread="0"]').count()) > 3)
    await isShown(page, '.span-detail li', 'WARNING The card issuer did not answer')
  })

  await t.test('the chosen span is in the address, and another editor is remembered', async () => {
    await page.locator('.fall-row', { hasText: 'INSERT INTO orders' }).click()
    await isShown(page, '.span-detail pre', 'INSERT INTO orders (id, item, quantity)')
    await page.reload()
    await isShown(page, '.span-detail pre', 'INSERT INTO orders (id, item, quantity)')
    await page.locator('.fall-row.is-failed', { hasText: 'attempt 3' }).click()
    await page.locator('select[aria-label="Editor"]').selectOption({ label: 'WebStorm' })
    await page.locator('.why .editor[href^="webstorm://open?file=/"]').waitFor()
    await page.reload()
    await page.locator('.why .editor[href^="webstorm://open?file=/"]').waitFor()
  })

  await t.test('the address is a link to it, and a letter is replayed from there with its outcome', async () => {
    const link = await copiedBy(page, () => button(page, 'Copy link').click())
    await button(page, 'Replay 1 dead letter').click()
    await page.locator('.fall-row.is-failed', { hasText: 'shop.ChargeCard.charge' }).nth(6).waitFor()
    const other = await context.newPage()
    await other.goto(link)
    await isShown(other, '.why', REFUSED)
    await other.close()
  })

  await t.test(
    'a request is found by a text of its SQL, by status, route, plugin and time, and by its id',
    async () => {
      await search(page, 'status:5xx since:10m plugin:shop.* "SELECT missing"')
      await choose(page, '/orders/broken')
      await isShown(page, '.why', 'shop.PlaceOrder.broken failed: no such column: missing')
      await page.locator('.fall-row', { hasText: 'SELECT missing' }).click()
      await isShown(page, '.span-detail .why', 'no such column: missing')
      await search(page, 'route:/orders/count status:200')
      await page.locator('.request-row', { hasText: '/orders/broken' }).first().waitFor({ state: 'detached' })
      await choose(page, '/orders/count')
      await isShown(page, '.request-head', '/orders/count')
      await search(page, id)
      await isShown(page, '.request-facts', id)
      assert.equal(idOf(page), id)
    },
  )

  await t.test('the back button leads through searches and requests, and a link has both', async () => {
    await page.goBack()
    await isShown(page, '.request-head', '/orders/count')
    assert.equal(new URL(page.url()).searchParams.get('q'), 'route:/orders/count status:200')
    assert.equal(await page.locator('input[type="search"]').inputValue(), 'route:/orders/count status:200')
    await page.goBack()
    await isShown(page, '.why', 'no such column')
    await page.goBack()
    await isShown(page, '.span-detail .why', 'no such column: missing')
    await page.goBack()
    await isShown(page, '.why', REFUSED)
    await page.reload()
    await rowWith(page, '/orders/broken').waitFor()
    assert.equal(await page.locator('.request-row', { hasText: '/orders/count' }).count(), 0)
  })

  await t.test('a word that is not known says so, and what to write instead', async () => {
    await page.keyboard.press('Control+k')
    await page.keyboard.type('statsu:500')
    await page.keyboard.press('Enter')
    await isShown(page, '.search-hint', 'Did you mean status:500?')
    await keepPicture(page, 'requests-hint')
  })

  await t.test(
    'what came in, what was published and what was answered is shown, and is sent again at the second click',
    async () => {
      await search(page, 'method:post')
      await page.locator('.request-row', { hasText: '/orders/broken' }).first().waitFor({ state: 'detached' })
      await page.locator('.request-row:not(.is-failed)', { hasText: 'POST' }).first().click()
      await isShown(page, '.payload', "Anna's loom")
      await isShown(page, '.payload', 'success')
      await page.locator('.fall-row', { hasText: 'db.publish' }).click()
      await isShown(page, '.payload', '"quantity": 2')
      const before = idOf(page)
      const curl = `curl -X POST '${service.url}/orders' -H 'content-type: application/json' --data-raw '{"item":"Anna'\\''s loom","quantity":2}'`
      assert.equal(await copiedBy(page, () => button(page, 'Copy as curl').click()), curl)
      const text = await copiedBy(page, () => button(page, 'Copy as test').click())
      assert.match(text, /app\.request\('POST', '\/orders', \{ body: \{ item: 'Anna\\'s loom', quantity: 2 \} \}\)/)
      assert.match(await outcomeOf(text), /ok 1 - POST \/orders answers 201[\s\S]*# pass 1/)
      await button(page, 'Send again').click()
      await button(page, 'Send POST again?').click()
      await page.waitForURL((url) => !url.pathname.endsWith(before))
      await isShown(page, '.request-facts', idOf(page))
      await isShown(page, '.payload', "Anna's loom")
      await keepPicture(page, 'requests-payload')
    },
  )

  await t.test('what the history does not keep is asked for before anything is sent or copied', async () => {
    const pay = { item: 'a secret loom', quantity: 1, password: 'hunter22' }
    const headers = { 'content-type': 'application/json', authorization: 'Bearer pay-4711' }
    await service.fetch('/orders', { method: 'POST', headers, body: JSON.stringify(pay) })
    await search(page, 'a secret loom')
    // The list of the search before has others of this path.
    await until(async () => (await page.locator('.request-row').count()) === 1, 'it alone is found')
    await choose(page, 'POST')
    await isShown(page, '.payload', 'a secret loom')
    const sent = async () => (await service.json('/system/requests?text=a secret loom')).body.length
    const before = await sent()
    const fillIn = async (what: string) => {
      await page.locator('.missing input').nth(0).fill('Bearer pay-4712')
      await page.locator('.missing input').nth(1).fill('hunter23')
      await page.locator('.missing button', { hasText: what }).click()
    }
    await button(page, 'Copy as curl').click()
    await isShown(page, '.missing', 'body.password')
    const curl = await copiedBy(page, () => fillIn('Copy as curl'))
    assert.match(curl, /-H 'authorization: Bearer pay-4712' .*"password":"hunter23"/)
    const chosen = idOf(page)
    await button(page, 'Send again').click()
    await button(page, 'Send POST again?').click()
    await isShown(page, '.missing', 'authorization')
    assert.equal(await sent(), before, 'nothing was sent')
    await fillIn('Send again')
    await page.waitForURL((url) => !url.pathname.endsWith(chosen))
    await isShown(page, '.request-facts', idOf(page))
    assert.equal(await sent(), before + 1)
  })

  await t.test('what is copied as a test repeats the request: it passes, or fails for the same reason', async () => {
    const run = async (route: string, other: string): Promise<string> => {
      await search(page, `route:${route}`)
      await page.locator('.request-row', { hasText: other }).first().waitFor({ state: 'detached' })
      await choose(page, route)
      await isShown(page, '.request-head', route)
      return outcomeOf(await copiedBy(page, () => button(page, 'Copy as test').click()))
    }
    assert.match(await run('/orders/count', '/orders/broken'), /ok 1 - GET \/orders\/count answers 200[\s\S]*# pass 1/)
    const failing = await run('/orders/broken', '/orders/count')
    assert.match(failing, /not ok 1 - GET \/orders\/broken does not fail[\s\S]*# fail 1/)
    assert.match(failing, /no such column: missing/)
  })

  await t.test('after kill -9 and a start the same page answers for what was before', async () => {
    await service.stop('SIGKILL')
    next = await startHeddle(t, { domains: DOMAINS, lanes: 1, env: { ...env, HEDDLE_RELEASE: 'second' } })
    await page.goto(`${next.url}/system/dashboard/requests?q=${encodeURIComponent('status:failed')}`)
    await choose(page, REFUSED)
    await isShown(page, '.why', REFUSED)
    await isShown(page, '.fall-row', 'INSERT INTO orders')
    await isShown(page, '.request-facts', 'release first')
  })

  await t.test('the page shows the release, and a new kind of failure says that it began with it', async () => {
    await next.fetch('/orders/broken', { method: 'HEAD' })
    await page.goto(`${next.url}/system/dashboard`)
    await isShown(page, '#release', 'second')
    await page.locator('.pinned .request-row', { hasText: 'HEAD' }).getByText('began with release second ·').waitFor()
    assert.equal(await page.locator('.request-row', { hasText: 'began with' }).count(), 1)
    await choose(page, 'began with release second')
    await isShown(page, '.request-facts', 'began with release second')
    await keepPicture(page, 'requests-release')
  })
  assert.deepEqual(
    faults.filter((fault) => !/ERR_CONNECTION|Failed to load resource|net::/.test(fault)),
    [],
  )
})

/** Saves a test in this repository, where `#heddle/testing` is found, and runs it. @returns what it has printed */
async function outcomeOf(text: string): Promise<string> {
  const place = mkdtempSync(join(ROOT, 'test/rooms/history/.run-'))
  try {
    mkdirSync(place, { recursive: true })
    const file = join(place, 'repeat.ts')
    writeFileSync(file, text)
    const env = { ...process.env, DOMAINS_DIR: DOMAINS.join(delimiter), NODE_TEST_CONTEXT: undefined }
    const args = ['--require', './src/preload.cjs', '--test', '--test-reporter', 'tap', file]
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env }).catch(
      (failed: { stdout: string }) => failed,
    )
    return stdout
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}
