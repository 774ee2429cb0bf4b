import assert from 'node:assert/strict'
import { test } from 'node:test'
import { browser } from '../../support/browser.ts'
import { startHeddle } from '../../support/heddle.ts'
import { startRelay } from '../../support/relay.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'

const TOKEN = 'operator-0123456789abcdef'

test('the pages of /system work with the token, in a real browser', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const { port } = await startHeddle(t, { domains: [SHIPPED], lanes: 1, env: { SYSTEM_TOKEN: TOKEN } })
  const { url, cut } = await startRelay(t, port)
  const context = await chromium.newContext()
  const page = await context.newPage()
  page.setDefaultTimeout(15_000)
  const faults: string[] = []
  page.on('pageerror', ({ message }) => void faults.push(message))
  const logIn = async (token: string): Promise<void> => {
    await page.fill('#token', token)
    await page.click('button[type=submit]')
  }

  await t.test('a page without the token leads to the login, which refuses a wrong one', async () => {
    await page.goto(`${url}/system/dashboard`)
    await page.waitForURL('**/system/login?next=*')
    await logIn('not the token')
    // By a selector: the page's policy lets nobody evaluate a text.
    await page.waitForSelector('#fault:has-text("This is not the token")')
  })

  await t.test('the token leads back to the dashboard, whose stream is live', async () => {
    await logIn(TOKEN)
    await page.waitForURL('**/system/dashboard')
    await page.waitForSelector('#link[data-state=live]')
    assert.equal(await page.evaluate('document.cookie'), '', 'scripts do not see the cookie')
    const [cookie] = await context.cookies()
    assert.deepEqual(
      [cookie?.name, cookie?.httpOnly, cookie?.sameSite, cookie?.path],
      ['heddle_system', true, 'Strict', '/system'],
    )
  })

  await t.test('the API page shows its operations', async () => {
    await page.goto(`${url}/system/docs`)
    await page.waitForSelector('#index a')
  })

  await t.test('an open dashboard whose cookie is gone leads to the login when its stream breaks', async () => {
    await page.goto(`${url}/system/dashboard`)
    await page.waitForSelector('#link[data-state=live]')
    await context.clearCookies()
    // The process ends the stream's connection: the page opens it again, without the cookie.
    cut()
    await page.waitForURL('**/system/login?next=*')
  })

  await t.test('the login goes to no other site', async () => {
    for (const next of ['https://evil.example/', '//evil.example/system/x', '/users', 'javascript:alert(1)']) {
      await page.goto(`${url}/system/login?next=${encodeURIComponent(next)}`)
      await logIn(TOKEN)
      await page.waitForURL('**/system/dashboard')
      assert.ok(page.url().startsWith(url), next)
    }
  })

  assert.deepEqual(faults, [])
})
