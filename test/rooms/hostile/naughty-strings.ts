const words = (text: string): string[] => text.split(' ')
const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code))

/** Texts that mean something to somebody on the way: to HTTP, JSON, forms, paths, JavaScript, SQL, a shell, a page or a terminal. */
export const NAUGHTY: Readonly<Record<string, readonly string[]>> = {
  'every character of ASCII that is neither letter nor digit': ASCII.filter((char) => /[^a-z0-9]/i.test(char)).map(
    (char) => `a${char}b`,
  ),
  'words that mean something elsewhere': [
    ...words('undefined null NULL nil true false NaN Infinity -Infinity then arguments this _auth _files CON nul'),
    ...words('constructor __proto__ prototype hasOwnProperty toString valueOf __defineSetter__ $where'),
  ],
  numbers: words('0 -1 1.0 -0 1e309 1/0 0xffffffff 1_000 9007199254740993 1E+02 999999999999999999999 ٣ ½ １ Ⅷ ١٢٣'),
  'characters alone, and many': [
    ...words(`' " '' "" '"' \` \\ \\\\ % %% %00 %s%p%n \\x00 \\u003c .. . - -- ~ * ? # + = &`),
    ...words('../../etc/passwd ..\\..\\x a/b a//b /./ a&b=c {{1}} #{1} $(id) @{1} =1+1 <!-- ]]> &lt;'),
    ...[' ', '  a  ', '\0', '\t', '\r\n', `,./;'[]\\-=<>?:"{}|_+!@#$%^&*()\`~`],
  ],
  phrases: [
    ...['a\r\nx-evil: 1\r\n\r\n', 'data: x\n\ndata: y', '{"$gt":""}', '<script>alert(1)</script>', '() { :; }; echo'],
    ...['"><img src=x onerror=alert(1)>', "1'; DROP TABLE users-- 1", "' OR '1'='1", '<%= 1+1 %>', '; ls | cat && id'],
  ],
  'other scripts': [
    ...words('田中さんにあげて 表ポあA鷗ŒéＢ逍 사회과학원 Ⱥ 👾 👨‍👩‍👧‍👦 🏳️‍🌈 🇺🇸🇷🇺 ثم הָיְתָה ﷽ åß∂ƒ©˙∆˚¬… ЁЂЃЄЅІЇЈ ⁰⁴⁵'),
    ...words('ด้้้้้็็็็็้้้้้ Z̮̞̠͙͔ͅḀ̗̞͈̻̗Ḷ͙͎̯̹̞͓G̻O̭̗̮ ˙ɐnbᴉlɐ Ｔｈｅ 𝐓𝐡𝐞 ⒯⒣⒠ ﬀﬁ ı İ ſ ß K Å 𝄞 \u{10ffff}'),
  ],
  'what cannot be seen': [
    ...words(
      '\u00ad \u034f \u061c \u115f \u180e \u200b \u200c\u200d \u200e\u200f \u2028 \u2029 \u202a\u202e\u2066\u2069',
    ),
    ...words(
      '\ufeff \ufffe \uffff \ufff9\ufffb \ue000 \u{e0001} \u{1d173} \u0085 \u0080 \u009f a\u0300 \u0300 a\u200bb',
    ),
    ...['\u00a0', '\u3000'],
  ],
  'much of it': [
    ...['a'.repeat(4_000), 'é'.repeat(1_500), '👾'.repeat(700), '%'.repeat(1_000), '/'.repeat(1_000)],
    ...['('.repeat(3_000), 'a&'.repeat(900), '\u0300'.repeat(1_000)],
  ],
}
