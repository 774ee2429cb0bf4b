import assert from 'node:assert/strict'
import { keepPicture, open, testPage } from './api-page.ts'

const TALK = JSON.stringify({
  room: 'tea',
  speaker: { nickname: 'with a key of its own', email: 'a@b.de' },
  minutes: 1,
})

testPage('what was sent leads to what it caused', async (t, heddle, tab) => {
  await t.test('a request', async () => {
    const { page, faults } = await open(tab, heddle, '#postTalks')
    const card = page.locator('#postTalks')
    assert.ok(!(await card.getByLabel('Files, as file').isVisible()), 'JSON has no files')
    await card.getByLabel('Idempotency-Key').fill('once')
    await card.getByRole('button', { name: 'Send' }).click()
    await card.locator('.answer-line .status', { hasText: '200' }).waitFor()
    await card.getByLabel('Idempotency-Key').fill('')
    await card.getByLabel('Body', { exact: true }).fill(TALK)
    await card.getByRole('button', { name: 'Send' }).click()
    await card.locator('.answer .code', { hasText: 'with a key of its own' }).waitFor()
    await keepPicture(page, 'sent')
    await card.getByRole('link', { name: 'See what it caused' }).click()
    await page.locator('.fall-row', { hasText: 'talks.HoldTalks.applaud' }).first().waitFor()

    // What the dashboard was asking for when its page was left has failed.
    assert.deepEqual(
      faults.filter((fault) => !fault.endsWith(' failed')),
      [],
    )
  })

  await t.test('a stream leads to its request, a WebSocket to the requests of its route', async () => {
    const { page } = await open(tab, heddle, '#getTalksTicks')
    const stream = page.locator('#getTalksTicks')
    await stream.getByRole('button', { name: 'Listen' }).click()
    const link = stream.getByRole('link', { name: 'See what it caused' })
    assert.match((await link.getAttribute('href')) ?? '', /^\/system\/dashboard\/requests\/req_/)
    await open(tab, heddle, '#getTalksByRoomTalk')
    const socket = page.locator('#getTalksByRoomTalk')
    await socket.getByLabel('room').fill('tea')
    await socket.getByRole('button', { name: 'Connect' }).click()
    await socket.getByText('1 message in, 0 out').waitFor()
    await socket.getByRole('link', { name: 'See what it caused' }).click()
    await page.locator('.request-row', { hasText: '/talks/tea/talk' }).first().waitFor()
  })
})
