import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { browser } from '../../support/browser.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { until } from '../../support/until.ts'
import { open, openTab, textOf } from './api-page.ts'
import { DOMAINS } from './fixtures/domains.ts'

const TOKEN = 'operator-0123456789abcdef'

test('with SYSTEM_PORT the pages reach the application, whose address their samples have', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const folder = temporaryFolder(t)
  const history = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db') }
  const heddle = await startHeddle(t, {
    domains: DOMAINS,
    lanes: 1,
    env: { SYSTEM_PORT: '0', SYSTEM_TOKEN: TOKEN, ...history },
  })
  const told = await until(() => heddle.logs.find(({ msg }) => msg.startsWith('/system is on ')), 'the address')
  const url = told.msg.split(' ').at(-1)!
  const tab = await openTab(chromium)
  const { page } = tab
  await page.goto(`${url}/system/login`)
  await page.getByLabel('Token').fill(TOKEN)
  await page.getByRole('button').click()
  await page.waitForURL(/\/system\/dashboard/)

  await t.test('a request of the docs', async () => {
    const { faults, hosts } = await open(tab, { ...heddle, url }, '#getHelloByName')
    const card = page.locator('#getHelloByName')
    await card.getByLabel('name').fill('Ada')
    await card.getByRole('button', { name: 'Send' }).click()
    await card.locator('.outcome').getByText('200').first().waitFor()
    assert.match(await textOf(card.locator('.outcome')), /Ada/)
    const { hostname, port } = new URL(heddle.url)
    assert.match(await textOf(card.locator('.sample-code')), new RegExp(`http://${hostname}:${port}/hello/Ada`))
    assert.deepEqual([...hosts], [new URL(url).host])
    assert.deepEqual(faults, [])
  })

  await t.test('a stream and a WebSocket', async () => {
    await open(tab, { ...heddle, url }, '#getTalksTicks')
    const stream = page.locator('#getTalksTicks')
    await stream.getByRole('button', { name: 'Listen' }).click()
    await stream.locator('.message', { hasText: '"tick":3' }).first().waitFor()
    await open(tab, { ...heddle, url }, '#getTalksByRoomTalk')
    const socket = page.locator('#getTalksByRoomTalk')
    await socket.getByLabel('room').fill('tea')
    await socket.getByRole('button', { name: 'Connect' }).click()
    await socket.getByText('1 message in, 0 out').waitFor()
  })

  await t.test('"Send again" of the dashboard', async () => {
    const { headers } = await heddle.json('/hello/again')
    const id = headers.get('x-request-id')!
    await page.goto(`${url}/system/dashboard/requests/${id}`)
    await page.locator('.request-buttons button', { hasText: 'Send again' }).click()
    await page.waitForURL((address) => !address.pathname.endsWith(id))
    const sent = new URL(page.url()).pathname.split('/').at(-1)!
    await page.locator('.request-facts', { hasText: sent }).waitFor()
    const init = { headers: { authorization: `Bearer ${TOKEN}` } }
    const kept = await until(async () => {
      const response = await fetch(`${url}/system/requests/${sent}`, init)
      return response.ok ? ((await response.json()) as { status: number; path: string }) : null
    }, 'the request that was sent')
    assert.deepEqual([kept.status, kept.path], [200, '/hello/again'])
  })
})
