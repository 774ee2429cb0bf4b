import assert from 'node:assert/strict'
import { keepPicture, open, testPage, textOf } from './api-page.ts'

testPage('streams and WebSockets are tried for what they are', async (t, heddle, tab) => {
  await t.test(
    'a WebSocket: connect, messages in and out, text and bytes, and the close of the other side',
    async () => {
      const { page, faults } = await open(tab, heddle, '#getTalksByRoomTalk')
      const card = page.locator('#getTalksByRoomTalk')
      assert.equal(await textOf(card.locator('.badge')), 'WS')
      assert.match(await textOf(card.locator('.connection')), /^Not connected/)
      await card.getByLabel('room').fill('tea & more')
      await card.getByRole('button', { name: 'Connect' }).click()
      await card.getByText('1 message in, 0 out').waitFor()
      await card.getByLabel('Message').fill('hello')
      await page.keyboard.press('Control+Enter')
      await card.getByText('2 messages in, 1 out').waitFor()
      await card.getByLabel('Message').fill('bytes')
      await card.getByRole('button', { name: 'Send' }).click()
      await card.getByText('3 messages in, 2 out').waitFor()
      await card.locator('.message', { hasText: '01 fe' }).waitFor()
      await keepPicture(page, 'socket')
      const messages = await card.locator('.message .code').allTextContents()
      assert.deepEqual(messages, ['01 fe', 'bytes', 'You said hello', 'hello', '{"room":"tea & more"}'])
      const rows = await card.locator('.message').all()
      const directions = await Promise.all(rows.map((row) => row.getAttribute('data-direction')))
      assert.deepEqual(directions, ['in', 'out', 'in', 'out', 'in'])
      await card.getByLabel('Message').fill('bye')
      await card.getByRole('button', { name: 'Send' }).click()
      await card.getByText('Closed with 4001: as asked').waitFor()
      assert.ok(await card.getByRole('button', { name: 'Send' }).isDisabled())
      assert.deepEqual(faults, [])
    },
  )

  await t.test('a WebSocket that asks for a token: refused without, open with it, closed from the page', async () => {
    const { page } = await open(tab, heddle, '#getTalksByRoomSecret')
    const card = page.locator('#getTalksByRoomSecret')
    await card.getByLabel('room').fill('tea')
    await card.getByRole('button', { name: 'Connect' }).click()
    await card.getByText('The handshake was refused').waitFor()
    await page.getByLabel('Token', { exact: true }).fill('good')
    await card.getByRole('button', { name: 'Connect' }).click()
    await card.getByText('1 message in, 0 out').waitFor()
    await card.getByRole('button', { name: 'Close' }).click()
    await card.getByText('Closed with 1000').waitFor()
    assert.match(await textOf(card.locator('.messages')), /"as":"host"/)
  })

  await t.test('a stream: its events as they come, until the page closes it', async () => {
    const { page, faults } = await open(tab, heddle, '#getTalksTicks')
    const card = page.locator('#getTalksTicks')
    await card.getByRole('button', { name: 'Listen' }).click()
    await card.locator('.message', { hasText: '"tick":3' }).first().waitFor()
    assert.match(await textOf(card.locator('.connection')), /^Open\d+ events$/)
    await keepPicture(page, 'stream')
    await card.getByRole('button', { name: 'Close' }).click()
    await card.getByText('Closed', { exact: true }).waitFor()
    assert.deepEqual(
      faults.filter((fault) => !fault.includes('/talks/ticks failed')),
      [],
    )
  })

  await t.test(
    'a stream that asks for a token: its refusal, and with the token all until the service ends it',
    async () => {
      const { page } = await open(tab, heddle, '#getTalksFewTicks')
      await page.getByRole('button', { name: 'Forget' }).click()
      const card = page.locator('#getTalksFewTicks')
      await card.getByRole('button', { name: 'Listen' }).click()
      await card.locator('.answer-line .status', { hasText: '401' }).waitFor()
      await page.getByLabel('Token', { exact: true }).fill('good')
      await card.getByRole('button', { name: 'Listen' }).click()
      await card.getByText('Ended by the server').waitFor()
      await card.getByText('3 events').waitFor()
      await card.locator('.message').nth(2).waitFor()
      assert.deepEqual(
        await card.locator('.message .code').allTextContents(),
        [3, 2, 1].map((tick) => `{"tick":${tick}}`),
      )
    },
  )
})
