import assert from 'node:assert/strict'
import { keepPicture, open, testPage, textOf } from './api-page.ts'

testPage('fields are found, and schemas have a page', async (t, heddle, tab) => {
  await t.test('search finds what takes or gives a field, and says where', async () => {
    const { page } = await open(tab, heddle)
    await page.keyboard.press('/')
    await page.keyboard.type('nickname')
    const shown = page.locator('.card:visible')
    await page.locator('#operations-count', { hasText: '1 of' }).waitFor()
    assert.deepEqual(await shown.locator('.path').allTextContents(), ['/talks'])
    assert.deepEqual(await shown.locator('.found-fields code').allTextContents(), [
      'body speaker.nickname',
      '200 data.speaker.nickname',
    ])
    await keepPicture(page, 'search')
    await page.keyboard.type(' get')
    await page.locator('#operations-count', { hasText: '0 of' }).waitFor()
    await page.keyboard.press('Escape')
    assert.equal(await page.locator('.found-fields:visible').count(), 0)
  })

  await t.test('a schema is one model, whatever uses it, and leads there and back', async () => {
    const { page, faults } = await open(tab, heddle, '#postTalks')
    const link = page.locator('#postTalks .input').getByRole('link', { name: 'Person' })
    await link.click()
    const card = page.locator('#model-Person')
    await card.getByText('nickname').waitFor()
    assert.equal(new URL(page.url()).pathname, '/system/docs/models')
    assert.equal(await page.locator('main .path', { hasText: /^Person\d*$/ }).count(), 1)
    const uses = await card.locator('.uses li').allTextContents()
    assert.deepEqual(uses, ['PostTalksBodya part of it', 'PostTalksResponsea part of it'])
    await keepPicture(page, 'models')
    await card.getByRole('link', { name: 'PostTalksBody' }).click()
    const body = page.locator('#model-PostTalksBody')
    assert.deepEqual(await body.locator('.uses li').allTextContents(), ['POST /talksbody'])
    await body.getByRole('link', { name: 'POST /talks' }).click()
    await page.locator('#postTalks .try-it').waitFor({ state: 'visible' })
    await page.goBack()
    await body.waitFor({ state: 'visible' })
    assert.deepEqual(faults, [])
  })

  await t.test('a link to a model opens it, and those of the runtime are folded away', async () => {
    const { page } = await open(tab, heddle, '/models#model-PostUsersBody')
    await page.locator('#model-PostUsersBody').getByText('password').first().waitFor()
    const folded = page.locator('[data-view=models] details.group')
    assert.match(await textOf(folded.locator('> summary')), /^The runtime itself\d+$/)
    const names = await page.locator('main [data-view=models] .path').allTextContents()
    assert.equal(new Set(names).size, names.length)
  })
})
