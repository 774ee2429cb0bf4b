import { readFile } from 'node:fs/promises'
import type { ApiInfo } from '#heddle'

/** Title and version of the service: API_TITLE and API_VERSION, else from its package.json, which has the licence. */
export async function apiInfo(title: string, version: string): Promise<ApiInfo> {
  const manifest = await readManifest()
  return {
    title: title || manifest.name || 'service',
    version: version || manifest.version || '0.0.0',
    ...(manifest.license && {
      license: { name: manifest.license, url: `https://spdx.org/licenses/${manifest.license}.html` },
    }),
  }
}

async function readManifest(): Promise<{ name?: string; version?: string; license?: string }> {
  try {
    return JSON.parse(await readFile('package.json', 'utf8'))
  } catch {
    // The process was started in a folder without a package.json.
    return {}
  }
}
