// Lets uWebSockets.js keep idle connections longer than the 10 s that are compiled into it.
/** Where a binary has its handler of connections whose time is over, and what it keeps of each. Only `App` uses it, not WebSockets. */
interface Binary {
  /** Offset in the file, and in memory, of `uWS::HttpContext<false>::init()::{lambda(us_socket_t *)#3}`. */
  readonly onTimeout: number
  /** Where the file's executable segment ends: zeros follow up to the end of the page. */
  readonly spare: number
  readonly fields: Fields
}

/** Offsets in a connection of `us_socket_t` and, behind it, `uWS::HttpResponseData<false>`. */
interface Fields {
  /** Length of `AsyncSocketData::buffer`: bytes of an answer that the kernel has not taken. */
  readonly waiting: number
  /** Length of `HttpParser::fallback`: bytes of a head that is not complete. */
  readonly head: number
  /** `HttpParser::remainingStreamingBytes`: what is still to come of a body. */
  readonly body: number
  /** `HttpResponseData::offset` of 64 bits: each request sets it to 0, and nobody reads it behind the end of an answer. */
  readonly offset: number
  /** `HttpResponseData::state` */
  readonly state: number
}

const FIELDS_20_51: Fields = { waiting: 0x38, head: 0x60, body: 0x78, offset: 0xe0, state: 0xec }
const FIELDS_20_69: Fields = { waiting: 0x38, head: 0x78, body: 0x90, offset: 0xf8, state: 0x104 }

/** By the build id that the linker has made of their content: code that nobody has looked at is not changed. */
const BINARIES: Readonly<Record<string, Binary>> = {
  // linux-x64-22, 20.51.4
  '6a41a3460b884a98ee7bfdfa804def3dc21b7cc7': { onTimeout: 0x104310, spare: 0x3d34f1, fields: FIELDS_20_51 },
  // linux-x64-24, 20.69.0
  '72e959bb0e21400b0c852dbc8a77ff46320b7426': { onTimeout: 0x112c40, spare: 0x41d599, fields: FIELDS_20_69 },
  // linux-x64-26, 20.69.0
  ea327ffb61de35f3a3e98fc6b546c30f744d1416: { onTimeout: 0x114050, spare: 0x41ee59, fields: FIELDS_20_69 },
}
/** Where each of them has it. */
const BUILD_ID_AT = 0x280
const BUILD_ID_BYTES = 20

/** The library looks at the time of its connections so often, milliseconds. */
const TICK_MS = 4_000
/** It closes an idle connection at the third tick, which is after 8 to 12 s. */
export const LIBRARY_IDLE_MS = 2 * TICK_MS

/**
 * Changes the binary so that it keeps a connection that waits for its next request until `keepAliveMs` are over, and two ticks longer at most.
 * All other times stay as they are compiled in: a connection that has asked for nothing, is in the middle of a head or a body, is to be closed,
 * or whose client leaves an answer unread.
 * @returns false where it is not a binary that is known: nothing is changed then
 */
export function keepIdle(binary: Buffer, keepAliveMs: number): boolean {
  const known = BINARIES[binary.toString('hex', BUILD_ID_AT, BUILD_ID_AT + BUILD_ID_BYTES)]
  if (known === undefined) return false
  const { onTimeout, spare, fields } = known
  const firstBytes = binary.subarray(onTimeout, onTimeout + JUMP_BYTES)
  const code = handler(fields, Math.ceil(keepAliveMs / TICK_MS) + 1, firstBytes, onTimeout + JUMP_BYTES - spare)
  if (!firstBytes.subarray(0, 4).equals(FIRST_BYTES) || binary.subarray(spare, spare + code.length).some(Boolean))
    return false
  code.copy(binary, spare)
  binary[onTimeout] = 0xe9
  binary.writeInt32LE(spare - onTimeout - JUMP_BYTES, onTimeout + 1)
  return true
}

/** `jmp` with a distance of 32 bits. */
const JUMP_BYTES = 5
/** `mov rsi, rdi`, and the first byte of an `xor`: the handler of each binary has two such instructions of five bytes. */
const FIRST_BYTES = Buffer.from([0x48, 0x89, 0xfe, 0x31])

/** A piece of code, the name of a place in it, or a jump to such a place with a distance of 32 bits. */
type Part = string | readonly number[] | { readonly jump: readonly number[]; readonly to: string }

const int32 = (value: number): number[] => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32LE(value)
  return [...bytes]
}
const JUMP = [0xe9]
const UNLESS_EQUAL = [0x0f, 0x85]
const IF_EQUAL = [0x0f, 0x84]
const UNLESS_BELOW = [0x0f, 0x83]

/**
 * What runs in place of the library's handler, on x86-64: it closes the connection as that does, or lets it wait for a further tick and returns
 * it. The upper 16 bits of `offset` count the ticks that it has been idle for; `HEAD_BEGUN` there says that a head has begun meanwhile, which has
 * two ticks from then on: with the tick in which it began 8 to 12 s, as the first head of a connection.
 * @param ticks so many may be over. @param firstBytes those of the handler
 * @param restAt where the handler goes on behind them, seen from the first byte of this
 */
function handler(fields: Fields, ticks: number, firstBytes: Buffer, restAt: number): Buffer {
  const counter = int32(fields.offset + 6)
  const close = (jump: readonly number[]): Part => ({ jump, to: 'close' })
  return assemble(
    [
      [0x8b, 0x87, ...int32(fields.state)], // mov eax, [rdi+state]
      [0xa8, 0x18], // test al, HTTP_RESPONSE_PENDING | HTTP_CONNECTION_CLOSE
      close(UNLESS_EQUAL),
      [0x85, 0xc0], // test eax, eax: it has asked for nothing
      close(IF_EQUAL),
      [0x8a, 0x47, 0x0c], // mov al, [rdi+poll_type]
      [0x24, 0x0c], // and al, POLL_TYPE_POLLING_IN | POLL_TYPE_POLLING_OUT
      [0x3c, 0x08], // cmp al, POLL_TYPE_POLLING_IN: neither paused nor waiting to write
      close(UNLESS_EQUAL),
      [0x48, 0x83, 0xbf, ...int32(fields.waiting), 0], // cmp qword [rdi+waiting], 0
      close(UNLESS_EQUAL),
      [0x48, 0x83, 0xbf, ...int32(fields.body), 0], // cmp qword [rdi+body], 0
      close(UNLESS_EQUAL),
      [0x44, 0x0f, 0xb7, 0x87, ...counter], // movzx r8d, word [rdi+counter]
      [0x48, 0x83, 0xbf, ...int32(fields.head), 0], // cmp qword [rdi+head], 0
      { jump: UNLESS_EQUAL, to: 'head' },
      // Does the client leave unread what the kernel has taken?
      [0x49, 0x89, 0xf9], // mov r9, rdi
      [0x8b, 0x7f, 0x08], // mov edi, [rdi+fd]
      [0xbe, ...int32(0x5411)], // mov esi, SIOCOUTQ
      [0x48, 0x8d, 0x54, 0x24, 0xf8], // lea rdx, [rsp-8]
      [0x83, 0x22, 0], // and dword [rdx], 0
      [0xb8, ...int32(16)], // mov eax, SYS_ioctl
      [0x0f, 0x05], // syscall
      [0x4c, 0x89, 0xcf], // mov rdi, r9
      [0x83, 0x7c, 0x24, 0xf8, 0], // cmp dword [rsp-8], 0
      close(UNLESS_EQUAL),
      [0x41, 0x8d, 0x40, 0x01], // lea eax, [r8+1]
      [0xb9, ...int32(3)], // mov ecx, 3: the ticks before the first look
      [0x45, 0x85, 0xc0], // test r8d, r8d
      [0x0f, 0x44, 0xc1], // cmove eax, ecx
      [0x3d, ...int32(ticks)], // cmp eax, ticks
      close(UNLESS_BELOW),
      [0x66, 0x89, 0x87, ...counter], // mov [rdi+counter], ax
      [0xb8, ...int32(1)], // mov eax, 1
      'wait',
      [0x48, 0x8b, 0x4f, 0x18], // mov rcx, [rdi+context]
      [0x0f, 0xb6, 0x49, 0x0c], // movzx ecx, byte [rcx+timestamp]
      [0x01, 0xc8], // add eax, ecx
      [0x8d, 0x88, ...int32(-240)], // lea ecx, [rax-240]
      [0x3d, ...int32(240)], // cmp eax, 240
      [0x0f, 0x43, 0xc1], // cmovae eax, ecx
      [0x88, 0x47, 0x10], // mov [rdi+timeout], al
      [0x48, 0x89, 0xf8], // mov rax, rdi
      [0xc3], // ret
      'head',
      [0x41, 0x8d, 0x40, 0xff], // lea eax, [r8-1]
      [0x3d, ...int32(HEAD_BEGUN - 1)], // cmp eax, HEAD_BEGUN-1: at the first look, or told already
      close(UNLESS_BELOW),
      [0x66, 0xc7, 0x87, ...counter, 0xff, 0xff], // mov word [rdi+counter], HEAD_BEGUN
      [0xb8, ...int32(2)], // mov eax, 2
      { jump: JUMP, to: 'wait' },
      'close',
      [...firstBytes],
      { jump: JUMP, to: 'rest' },
    ],
    { rest: restAt },
  )
}

const HEAD_BEGUN = 0xffff

/** @param places those outside, seen from the first byte */
function assemble(parts: readonly Part[], places: Record<string, number>): Buffer {
  const bytes: number[] = []
  const jumps: { at: number; to: string }[] = []
  for (const part of parts) {
    if (typeof part === 'string') places[part] = bytes.length
    else if (!('to' in part)) bytes.push(...part)
    else {
      bytes.push(...part.jump, 0, 0, 0, 0)
      jumps.push({ at: bytes.length, to: part.to })
    }
  }
  const code = Buffer.from(bytes)
  for (const { at, to } of jumps) code.writeInt32LE(places[to]! - at, at - 4)
  return code
}
