// What every lane needs, whatever the domains hold: loaded ahead of time, in a thread that waits for its lane.
import 'zod'
import '../index.ts'
import { loadModule } from '../core/files/load-module.ts'
import { findTools } from '../runtime/kernel/discover.ts'
import type { WarmUp } from '../transport/messages.ts'

/** @returns when the tools are loaded; one that does not load says so where it is installed */
export async function warmUp({ toolsDir }: WarmUp): Promise<void> {
  for (const { file } of findTools(toolsDir)) await loadModule(file).catch(() => {})
}
