import { readFile } from 'node:fs/promises'
import type { ApiInfo, Tools } from '#heddle'

/** A person as package.json has one: `Ada <ada@example.com> (https://example.com)`, or its parts. */
type Person = string | { name?: string; email?: string; url?: string }

interface Manifest {
  name?: string
  version?: string
  license?: string
  author?: Person
  bugs?: string | { url?: string; email?: string }
}

/** Title and version of the service: API_TITLE and API_VERSION, else from its package.json, which has the licence and whom to ask. */
export async function apiInfo(config: Tools['config']): Promise<ApiInfo> {
  const manifest = await readManifest()
  const contact = contactOf(manifest)
  return {
    title: config.get('API_TITLE', { default: '' }) || manifest.name || 'service',
    version: config.get('API_VERSION', { default: '' }) || manifest.version || '0.0.0',
    ...(contact && { contact }),
    ...(manifest.license && {
      license: { name: manifest.license, url: `https://spdx.org/licenses/${manifest.license}.html` },
    }),
  }
}

/** The author, and where faults are told, before the author's own addresses. Undefined where nobody is named. */
export function contactOf({ author = {}, bugs = {} }: Manifest): ApiInfo['contact'] {
  const { name, url, email } = typeof author === 'string' ? partsOf(author) : author
  const told = typeof bugs === 'string' ? { url: bugs } : bugs
  const contact = Object.entries({ name, url: told.url ?? url, email: told.email ?? email }).filter(([, text]) => text)
  return contact.length === 0 ? undefined : Object.fromEntries(contact)
}

const partsOf = (author: string) => ({
  name: /^[^<(]*/.exec(author)![0].trim(),
  email: /<([^>]*)>/.exec(author)?.[1],
  url: /\(([^)]*)\)/.exec(author)?.[1],
})

async function readManifest(): Promise<Manifest> {
  try {
    return JSON.parse(await readFile('package.json', 'utf8'))
  } catch {
    // The process was started in a folder without a package.json.
    return {}
  }
}
