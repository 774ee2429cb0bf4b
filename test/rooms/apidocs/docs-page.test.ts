import assert from 'node:assert/strict'
import { keepPicture, NARROW, open, testPage, textOf, WAIT_MS } from './api-page.ts'

// These texts run in the page, where Node's types do not apply.
const OPEN_ALL = "for (const card of document.querySelectorAll('details')) card.open = true"
const NAMELESS = `[...document.querySelectorAll('input, select, textarea, button')]
  .filter((control) => !control.labels?.length && !control.textContent.trim() && !control.ariaLabel)
  .map((control) => control.outerHTML)`
const COLOURS = '[getComputedStyle(document.body).color, getComputedStyle(document.documentElement).backgroundColor]'

type Rgb = [red: number, green: number, blue: number]

testPage('the page of the API in a browser', async (t, heddle, tab) => {
  await t.test(
    'it loads under its policy: no error, no request to another host, nothing that is markup becomes it',
    async () => {
      const { page, faults, hosts } = await open(tab, heddle)
      assert.equal(await page.title(), '<b>Odd</b> things · API')
      assert.equal(await page.textContent('h1'), '<b>Odd</b> things')
      const listed = await page.locator('[data-view=operations] .card').count()
      const { paths } = (await heddle.json('/system/openapi.json')).body
      const operations = Object.values<object>(paths).flatMap((item) => Object.keys(item)).length
      assert.equal(listed, operations)
      // Every card can be opened, whatever is in it.
      await page.evaluate(OPEN_ALL)
      await page.locator('#postOddHostile .try-it').waitFor()
      assert.deepEqual([...hosts], [new URL(heddle.url).host])
      assert.deepEqual(faults, [])
      const { headers } = await heddle.fetch('/system/docs')
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'self'/)
    },
  )

  await t.test('the runtime’s own operations are folded away, until one is linked or searched for', async () => {
    const { page } = await open(tab, heddle)
    const own = page.locator('[data-view=operations] details.group')
    assert.match(await textOf(own.locator('> summary')), /^The runtime itself\d+$/)
    const status = page.locator('#getSystemStatus')
    assert.ok(!(await status.isVisible()))
    assert.equal(await page.locator('section.group .path', { hasText: '/system' }).count(), 0)
    await keepPicture(page, 'page')
    await page.getByLabel('Search operations').fill('system/status')
    await status.waitFor()
    await page.getByLabel('Search operations').fill('')
    await status.waitFor({ state: 'hidden' })
    await page.evaluate("location.hash = 'getSystemStatus'")
    await status.getByRole('button', { name: 'Send' }).waitFor()
  })

  await t.test('it has one head with the dashboard, and leads there and back', async () => {
    const { page } = await open(tab, heddle)
    const styles = `(() => {
      const styles = getComputedStyle(document.querySelector('.top .brand'))
      const links = [...document.querySelectorAll('.pages a')].map((link) => link.textContent + link.href)
      return [styles.fontFamily, styles.fontSize, styles.fontWeight, styles.color, document.querySelector('.top').getBoundingClientRect().height, ...links]
    })()`
    const own = await page.evaluate<unknown[]>(styles)
    await page.getByRole('link', { name: 'Dashboard' }).click()
    await page.locator('#sections').waitFor()
    assert.deepEqual(await page.evaluate<unknown[]>(styles), own)
    await page.getByRole('link', { name: 'Docs' }).click()
    await page.locator('.card').first().waitFor()
  })

  await t.test(
    'search leaves what has all the words, in the list and in the index; / goes there and Escape clears',
    async () => {
      const { page } = await open(tab, heddle)
      await page.keyboard.press('/')
      await page.keyboard.type('users POST up')
      const shown = page.locator('.card:visible .card-line')
      assert.deepEqual(await shown.allTextContents(), ['POST/usersSign up'])
      assert.equal(await page.locator('.index a:visible').count(), 1)
      assert.match((await page.textContent('#operations-count')) ?? '', /^1 of \d+$/)
      await page.keyboard.type(' nothing-like-it')
      await page.getByText('Nothing matches.').waitFor({ timeout: WAIT_MS })
      await page.keyboard.press('Escape')
      assert.ok((await shown.count()) > 20)
    },
  )

  await t.test('a link opens its operation, and its request shows status, headers, time and body', async () => {
    const { page, faults } = await open(tab, heddle, '#getHelloByName')
    const card = page.locator('#getHelloByName')
    await card.getByLabel('name').fill('Ada / Grace')
    await card.getByRole('button', { name: 'Send' }).click()
    const answer = card.locator('.answer')
    await answer.waitFor({ timeout: WAIT_MS })
    assert.match(await textOf(answer.locator('.answer-line')), /^200OK\d+ ms · \d+ bytesSee what it caused$/)
    assert.deepEqual(JSON.parse(await textOf(answer.locator('.code'))), {
      success: true,
      data: { hello: 'Ada / Grace' },
    })
    await answer.getByText('Headers').click()
    assert.match(await textOf(answer.locator('dl')), /x-request-id/)
    assert.deepEqual(faults, [])
  })

  await t.test('sign up, log in, use the token, and ask who one is: by keyboard alone', async () => {
    const { page } = await open(tab, heddle, '#postUsers')
    const send = async (id: string): Promise<string> => {
      await page.evaluate(`location.hash = '${id}'`)
      const card = page.locator(`#${id}`)
      await card.getByRole('button', { name: 'Send' }).focus()
      await page.keyboard.press('Enter')
      await card.locator('.answer').waitFor({ timeout: WAIT_MS })
      return textOf(card.locator('.answer-line .status'))
    }
    assert.equal(await send('postUsers'), '201')
    assert.equal(await send('postLogin'), '200')
    await page.locator('#postLogin').getByRole('button', { name: 'Use this token' }).focus()
    await page.keyboard.press('Enter')
    assert.equal(await send('getUsersMe'), '200')
    assert.match(await textOf(page.locator('#getUsersMe .answer .code')), /ada@example\.com/)
  })

  await t.test('samples follow what is filled in, and show no token', async () => {
    const { page } = await open(tab, heddle, '#getTalksByRoomSecret')
    await page.getByLabel('Token', { exact: true }).fill('a-secret')
    const card = page.locator('#getTalksByRoomSecret')
    await card.getByLabel('room').fill("it's")
    await card.getByLabel('as').selectOption('guest')
    await card.getByRole('button', { name: 'client' }).click()
    const code = await textOf(card.locator('.samples .code'))
    assert.match(code, /params: \{ room: 'it\\'s' \},\s+query: \{ as: 'guest' \}/)
    assert.match(code, /token: '•+'/)
    assert.doesNotMatch((await page.content()).replace(/<input[^>]*>/g, ''), /a-secret/)
    // The kind that was chosen is shown first at the next operation.
    await page.evaluate("location.hash = 'postOddForms'")
    const form = page.locator('#postOddForms')
    assert.match(await textOf(form.locator('.samples .code')), /client\.postOddForms\(/)
    await form.getByLabel('Body', { exact: true }).fill('{"name":"Grace"}')
    await form.getByLabel('Body as').selectOption('multipart/form-data')
    assert.match(await textOf(form.locator('.samples .code')), /body: \{ name: 'Grace' \},\s+files: \{\}/)
    await keepPicture(page, 'samples')
    await page.getByRole('button', { name: 'Forget' }).click()
  })

  await t.test('a form is sent as a form', async () => {
    const { page } = await open(tab, heddle, '#postOddForms')
    const form = page.locator('#postOddForms')
    await form.getByLabel('Body as').selectOption('multipart/form-data')
    await form.getByRole('button', { name: 'Send' }).click()
    await form.locator('.answer').waitFor({ timeout: WAIT_MS })
    assert.match(await textOf(form.locator('.answer .code')), /"name": "name"/)
  })

  await t.test('every control has a name, in both colour schemes texts stand out, and 400 px are enough', async () => {
    for (const colorScheme of ['light', 'dark'] as const) {
      await tab.page.emulateMedia({ colorScheme })
      await tab.page.setViewportSize(NARROW)
      const { page } = await open(tab, heddle, '#postOddTrees')
      await page.locator('#postOddTrees .try-it').waitFor({ timeout: WAIT_MS })
      for (const view of ['operations', 'models']) {
        await page.evaluate(`document.getElementById('show-${view}').click()`)
        await page.evaluate(OPEN_ALL)
        const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
        assert.ok(overflow <= 0, `${view}: ${overflow} px too wide`)
      }
      const nameless = await page.evaluate<string[]>(NAMELESS)
      assert.deepEqual(nameless, [])
      assert.equal(await page.locator('main, header, nav').count(), 4)
      const colours = (await page.evaluate<string[]>(COLOURS)).map((text) => text.match(/\d+/g)!.map(Number) as Rgb)
      assert.ok(contrast(colours[0]!, colours[1]!) > 7, `${colorScheme} ${JSON.stringify(colours)}`)
    }
  })
})

/** Source: WCAG 2.2, contrast ratio. */
function contrast(a: Rgb, b: Rgb): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((one, other) => one - other) as [number, number]
  return (light + 0.05) / (dark + 0.05)
}

function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((part) => {
    const share = part / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as Rgb
  return 0.2126 * r + 0.7152 * g + 0.0722 * b
}
