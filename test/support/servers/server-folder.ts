import { chown, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { SystemUser } from './server-process.ts'
import { tellWarden } from './warden.ts'

/** A temporary folder that does not outlive this process. */
export async function makeServerFolder(name: string, user?: SystemUser): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), `heddle-test-${name}-`))
  tellWarden({ folder })
  if (user !== undefined) await chown(folder, user.uid, user.gid)
  return folder
}

export async function removeServerFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  tellWarden({ forget: folder })
}
