import { type Browser, chromium } from 'playwright-core'

export default (get: (name: string) => string) => {
  const executablePath = get('TRIAL_CHROMIUM')
  let browser: Promise<Browser> | undefined
  return async () => {
    browser ??= chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] })
    const page = await (await browser).newPage()
    await page.setContent('<h1>Loom</h1>')
    const text = await page.textContent('h1')
    await page.close()
    return text
  }
}
