import assert from 'node:assert/strict'
import { keepPicture, open, testPage, textOf } from './api-page.ts'

const TALK = JSON.stringify({
  room: 'tea',
  speaker: { nickname: 'with a key of its own', email: 'a@b.de' },
  minutes: 1,
})

testPage('what was sent leads to what it caused', async (t, heddle, tab) => {
  await t.test('a request, and an event that is published from the page', async () => {
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

    await open(tab, heddle, '#event-talk.held')
    const event = page.locator('[id="event-talk.held"]')
    assert.match(await event.getByLabel('Payload').inputValue(), /"nickname": "nickname"/)
    await event.getByRole('button', { name: 'Publish' }).click()
    await event.locator('.answer-line .status', { hasText: '200' }).waitFor()
    assert.match(await textOf(event.locator('.answer .code')), /"id": "evt_[0-9a-f]{32}"/)
    await keepPicture(page, 'published')
    await event.getByRole('link', { name: 'See what it caused' }).click()
    await page.locator('.fall-row', { hasText: 'talks.HoldTalks.applaud' }).first().waitFor()
    // What the dashboard was asking for when its page was left has failed.
    assert.deepEqual(
      faults.filter((fault) => !fault.endsWith(' failed')),
      [],
    )
  })

  await t.test('a payload that its contract refuses, and text that is no JSON, are told', async () => {
    const { page } = await open(tab, heddle, '#event-talk.held')
    const event = page.locator('[id="event-talk.held"]')
    await event.getByLabel('Payload').fill('{ "room": 7 }')
    await event.getByRole('button', { name: 'Publish' }).click()
    await event.locator('.answer-line .status', { hasText: '422' }).waitFor()
    assert.match(await textOf(event.locator('.answer .code')), /speaker/)
    await event.getByLabel('Payload').fill('{')
    await event.getByRole('button', { name: 'Publish' }).click()
    await event.getByRole('alert').getByText('The payload is no JSON').waitFor()
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
