import { readFile } from 'node:fs/promises'
import type { ApiInfo } from '#heddle'

/** What the service calls itself: API_TITLE and API_VERSION, else its package.json. */
export async function apiInfo(title: string, version: string): Promise<ApiInfo> {
  const manifest = await readManifest()
  return {
    title: title || manifest.name || 'service',
    version: version || manifest.version || '0.0.0',
  }
}

async function readManifest(): Promise<{ name?: string; version?: string }> {
  try {
    return JSON.parse(await readFile('package.json', 'utf8'))
  } catch {
    // Started from elsewhere: it has no name then.
    return {}
  }
}
