// Modules that every lane needs, whatever its domains: loaded ahead of time, in a thread that waits for its lane.
import 'zod'
import '../index.ts'
import { loadModule } from '../core/modules/domains.ts'
import { activeTools } from '../runtime/kernel/discover.ts'
import type { WarmUp } from '../transport/messages.ts'

/** Resolves when the tools are loaded. A tool that does not load is reported when it is installed. */
export async function warmUp({ toolsDir, tools }: WarmUp): Promise<void> {
  for (const { file } of activeTools(toolsDir, tools)) await loadModule(file).catch(() => {})
}
