import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { browser, type Page } from '../../support/browser.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startHeddle } from '../../support/heddle.ts'
import { SHIPPED } from '../../support/shipped-domains.ts'
import { until } from '../../support/until.ts'
import { keepPicture } from '../apidocs/api-page.ts'

const DOMAINS = [SHIPPED, fileURLToPath(new URL('./joined', import.meta.url))]

test('what the dashboard shows is joined with its requests', async (t) => {
  const chromium = await browser(t)
  if (chromium === null) return
  const folder = temporaryFolder(t)
  const env = { HISTORY_ENABLED: 'true', HISTORY_PATH: join(folder, 'history.db'), LOG_LEVEL: 'debug' }
  const heddle = await startHeddle(t, { domains: DOMAINS, lanes: 1, env })
  const { headers } = await heddle.post('/cloth', { metres: 12 })
  const id = headers.get('x-request-id')!
  await until(async () => (await heddle.json('/system/dead-letters')).body.length === 1, 'the dead letter')

  const page: Page = await chromium.newPage({ viewport: { width: 1280, height: 800 } })
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(String(error)))
  page.on('console', (message) => message.type() === 'error' && faults.push(message.text()))
  const shot = (name: string) => keepPicture(page, name)
  const go = (section: string) => page.locator(`#sections a[data-section="${section}"]`).click()
  const isAtRequest = async () => {
    await page.waitForURL(`**/system/dashboard/requests/${id}*`)
    await page.locator('.request-facts', { hasText: id }).waitFor()
  }

  await t.test(
    'the log of before the page was opened is there, all levels; a line unfolds its fields and its stack',
    async () => {
      await page.goto(`${heddle.url}/system/dashboard#logs`)
      const line = (text: string) => page.locator('.row.log:not([hidden])', { hasText: text })
      await page.getByLabel('Filter logs').fill(id)
      await line('DEBUG').filter({ hasText: 'The loom is set up' }).waitFor()
      await line('The vat is empty').first().click()
      const detail = page.locator('.log-detail')
      await detail.getByLabel('Stack').filter({ hasText: 'weave-cloth.ts' }).waitFor()
      await shot('logs')
      await line('Cloth is woven').click()
      await detail.getByText('"indigo"').waitFor()
      await page.getByLabel('Least level').selectOption('INFO')
      await until(async () => (await line('The loom is set up').count()) === 0, 'no DEBUG')
      await page.getByLabel('Least level').selectOption('DEBUG')
      const places = page.locator('.row.log:not([hidden])')
      await until(
        async () => (await places.last().getAttribute('aria-setsize')) === String(await places.count()),
        'the last one says how many there are',
      )
      assert.equal(await places.first().getAttribute('aria-posinset'), '1')
      assert.equal(
        heddle.logs.find(({ msg }) => msg === 'Cloth is woven')?.request_id,
        id,
        'in the lines of the log, too',
      )
    },
  )

  await t.test('a log line leads to its request, and to the row of it there', async () => {
    await page
      .locator('.row.log:not([hidden])', { hasText: 'Cloth is woven' })
      .getByRole('link', { includeHidden: true })
      .click()
    await isAtRequest()
    await page.locator('.fall-row[aria-selected="true"]', { hasText: 'Cloth is woven' }).waitFor()
    await page.goBack()
    await page.locator('.view.logs').waitFor()
  })

  await t.test(
    'a dead letter leads to its request; its replay and what came of it take one click, in its place',
    async () => {
      await go('letters')
      const letter = page.locator('.letter')
      await letter.getByRole('link', { name: id }).click()
      await isAtRequest()
      await page.locator('.letter-lines').getByRole('link', { name: 'Dead letter' }).waitFor()
      await shot('request')
      await page.locator('.letter-lines').getByRole('link', { name: 'Dead letter' }).click()
      await page.locator('.letter:focus', { hasText: 'cloth.woven' }).waitFor()
      await letter.getByRole('button', { name: 'Replay' }).click()
      await letter.filter({ hasText: 'Failed again' }).getByText('No dye for 12 metres').first().waitFor()
      await shot('letters')
      await heddle.post('/dye', { isThere: true })
      await letter.getByRole('button', { name: 'Replay' }).click()
      await letter.filter({ hasText: 'Handled' }).waitFor()
      await heddle.post('/dye', { isThere: false })
    },
  )

  await t.test('the time of a letter stays true while it is shown', async () => {
    await heddle.post('/cloth', { metres: 1 })
    const time = page.locator('.letter', { hasText: 'No dye for 1 metres' }).locator('time').first()
    const before = await time.textContent()
    await until(async () => (await time.textContent()) !== before, 'a later time')
    assert.match((await time.textContent())!, /^\d\d:\d\d:\d\d\.\d{3} · \d+ s ago$/)
  })

  await t.test('a letter shows its event in the middle of a long list, and tells when it is gone', async () => {
    for (let n = 0; n < 120; n++) await heddle.post('/dye', { isThere: true, n })
    for (let n = 0; n < 60; n++) await heddle.post('/cloth', { metres: 100 + n })
    await page
      .locator('.letter', { hasText: 'No dye for 1 metres' })
      .getByRole('button', { name: 'Show event' })
      .click()
    const chosen = page.locator('#trees .row[aria-selected="true"]')
    await chosen.waitFor()
    const [list, row] = [await page.locator('#trees').boundingBox(), await chosen.boundingBox()]
    assert.ok(row!.y > list!.y + 30 && row!.y + row!.height < list!.y + list!.height - 30, 'in the middle')
    assert.match((await chosen.getAttribute('aria-setsize'))!, /^\d+$/)
    await page.locator('aside.detail').getByText('mill.WeaveCloth failed').waitFor()
    await shot('events')
    await page.goto(`${heddle.url}/system/dashboard?event=evt_gone#events`)
    await page.locator('.notice', { hasText: 'evt_gone is not in the list any more' }).waitFor()
    await page.getByRole('link', { name: 'What the history keeps of it' }).waitFor()
  })

  await t.test('an event leads to its request, and back', async () => {
    const { body } = await heddle.json('/system/traces/flat')
    const event = body.find(({ request_id }: { request_id: string }) => request_id === id).id
    await page.goto(`${heddle.url}/system/dashboard?event=${event}#events`)
    await page.locator('aside.detail').getByRole('link', { name: id }).click()
    await isAtRequest()
    await page.locator('.fall-row', { hasText: 'event_bus.publish' }).click()
    await page.locator('.span-detail').getByRole('link', { name: event }).click()
    await page.locator('aside.detail').getByText(event).waitFor()
    await page.locator('#trees .row[aria-selected="true"]', { hasText: 'cloth.woven' }).waitFor()
  })

  await t.test('a list under the pointer is held in a flood until the pointer leaves, and says so', async () => {
    await heddle.post('/dye', { isThere: true })
    const note = page.locator('.events .toolbar .note')
    const size = () => page.locator('#trees .row[aria-level="1"]:not([hidden])').first().getAttribute('aria-setsize')
    await page.locator('#trees').hover()
    let weaves = true
    const flood = (async () => {
      while (weaves) await heddle.post('/cloth', { metres: 5 })
    })()
    await note.filter({ hasText: 'The list is held while the pointer is on it' }).waitFor()
    const held = await size()
    await note.filter({ hasText: /· [1-9]\d* more since/ }).waitFor()
    weaves = false
    await flood
    await page.locator('.figure', { hasText: 'Requests a second' }).locator('strong', { hasText: /^0$/ }).waitFor()
    assert.equal(await size(), held, 'also when the flood is over')
    assert.match((await note.textContent())!, /^The list is held/)
    await page.mouse.move(2, 2)
    await note.filter({ hasText: 'events since the start' }).waitFor()
    await until(async () => (await size()) !== held, 'what came meanwhile')
    await heddle.post('/dye', { isThere: false })
  })

  await t.test('the topology fits, zooms and moves, and a plugin leads to its requests', async () => {
    await go('topology')
    const node = page.locator('[data-id="plugin mill.WeaveCloth"]')
    await node.waitFor()
    const viewport = page.locator('.viewport')
    const fits = page.locator('.viewport[data-fits="true"]')
    const percent = async () => Number.parseInt((await page.locator('.zoom-percent').textContent())!, 10)
    const isInside = async () => {
      const [outer, inner] = [(await viewport.boundingBox())!, (await node.boundingBox())!]
      const { x, y, width, height } = outer
      return inner.x >= x && inner.x + inner.width <= x + width && inner.y >= y && inner.y + inner.height <= y + height
    }
    assert.ok(await isInside(), 'it fits')
    await shot('topology')
    const { x, y } = (await viewport.boundingBox())!
    await page.mouse.move(x + 5, y + 5)
    const fit = await percent()
    await page.mouse.wheel(0, -600)
    await until(async () => (await percent()) > fit * 2, 'the wheel zooms')
    const left = () =>
      page.evaluate<number>(`document.querySelector('[data-id="plugin mill.WeaveCloth"]').getBoundingClientRect().x`)
    const before = await left()
    await page.mouse.move(x + 300, y + 100)
    await page.mouse.down()
    await page.mouse.move(x + 200, y + 60, { steps: 3 })
    await page.mouse.up()
    await until(async () => Math.abs((await left()) - before) > 50, 'the mouse moves it')
    assert.match(page.url(), /#topology$/, 'a drag is no click')
    await page.getByRole('button', { name: 'Show the whole picture' }).click()
    await fits.waitFor()
    await page.keyboard.press('Shift+Tab')
    await page.locator('.viewport a[tabindex="0"]').focus()
    await page.keyboard.press('+')
    await page.keyboard.press('+')
    await page.locator('.viewport[data-fits="false"]').waitFor()
    await page.keyboard.press('Shift+ArrowRight')
    await page.keyboard.press('0')
    await fits.waitFor()
    await page.setViewportSize({ width: 900, height: 800 })
    const { y: top } = (await viewport.boundingBox())!
    await node.hover()
    await page.locator('.node-note', { hasText: 'mill.WeaveCloth: ' }).waitFor()
    assert.equal((await viewport.boundingBox())!.y, top, 'what is said of a node does not move it')
    await node.click()
    await page.waitForURL('**/system/dashboard/requests?q=plugin%3Amill.WeaveCloth')
    await page.locator('.request-row', { hasText: '/cloth' }).first().waitFor()
    await page.setViewportSize({ width: 1280, height: 800 })
  })

  await t.test('a request replays its letter, and shows what came of it', async () => {
    const { headers } = await heddle.post('/cloth', { metres: 77 })
    await page.goto(`${heddle.url}/system/dashboard/requests/${headers.get('x-request-id')}`)
    await page.locator('.letter-lines').getByRole('link', { name: 'Dead letter' }).waitFor()
    await heddle.post('/dye', { isThere: true })
    await page.getByRole('button', { name: 'Replay 1 dead letter' }).click()
    await page.locator('.letter-lines [data-outcome="done"]', { hasText: 'Handled' }).waitFor()
    await heddle.post('/dye', { isThere: false })
  })

  await t.test(
    'a black box leads to the request that a lane died with, which says at which line, and back',
    async () => {
      const { headers } = await heddle.post('/snap', {})
      const fatal = headers.get('x-request-id')!
      await page.goto(`${heddle.url}/system/dashboard#lanes`)
      await page.locator('.deaths summary', { hasText: 'mill.WeaveCloth' }).click()
      await shot('lanes')
      await page.locator('.deaths').getByRole('link', { name: fatal }).first().click()
      await page.locator('.why', { hasText: /The warp snapped at .*weave-cloth\.ts:\d+/ }).waitFor()
      await page.getByRole('link', { name: 'Black box of lane 0' }).click()
      await page.locator('.deaths details[open]', { hasText: 'The warp snapped' }).waitFor()
    },
  )

  assert.deepEqual(
    faults.filter((fault) => !fault.includes('404')),
    [],
  )
})
