/** All that the page says, in English and in Korean. @type {Record<string, [string, string]>} */
const WORDS = {
  heads: ["All heads", "모든 헤드"],
  headsHint: [
    "Layers downward, heads across: choose one to open it. In each, rows are queries and columns are keys.",
    "층은 아래로, 헤드는 옆으로: 하나를 고르면 열립니다. 각 그림의 행은 쿼리, 열은 키입니다.",
  ],
  roles: ["Signs: roles that are established, as measured by attnviz compare-heads", "기호: attnviz compare-heads로 재어 확립된 역할"],
  noRoles: ["No head of this model has an established role in what was measured.", "이 모델에는 측정에서 확립된 역할을 하는 헤드가 없습니다."],
  head: ["head {0}", "헤드 {0}"],
  mean: ["mean", "평균"],
  meanOfLayer: ["mean over the heads of layer {0}", "층 {0}에 있는 헤드들의 평균"],
  meanOfHead: ["mean over layers, head {0}", "헤드 {0}의 모든 층 평균"],
  meanOfAll: ["mean over all layers and heads", "모든 층과 헤드의 평균"],
  matrix: ["Matrix", "행렬"],
  lines: ["Lines", "선"],
  sentence: ["Sentence", "문장"],
  queries: ["Queries", "쿼리"],
  keys: ["Keys", "키"],
  from: ["Where it looks", "어디를 보는가"],
  to: ["Who looks at it", "누가 보는가"],
  fromWord: ["“{0}” looks at", "“{0}”에서 보는 곳"],
  toWord: ["“{0}” is looked at by", "“{0}”을(를) 보는 토큰"],
  eachToken: ["What each token of this group looks at most, itself and special tokens left out", "이 묶음의 토큰마다 가장 많이 보는 토큰 (자기 자신과 특수 토큰 제외)"],
  strongest: ["Strongest links of this head", "이 헤드에서 가장 강한 연결"],
  pointHint: ["Point at a word, or press Tab and the arrow keys.", "단어를 가리키거나 Tab과 화살표 키를 누르세요."],
  query: ["query", "쿼리"],
  key: ["key", "키"],
  weight: ["weight", "가중치"],
  sum: ["sum", "합"],
  all: ["Show all {0}", "{0}개 모두 보기"],
  fewer: ["Show the strongest", "강한 것만 보기"],
  direction: ["Direction", "방향"],
  special: ["Hide special tokens", "특수 토큰 숨기기"],
  merge: ["Merge word pieces", "단어 조각 합치기"],
  part: ["Sentences", "문장 쌍"],
  partAll: ["both", "둘 다"],
  scale: ["Colours end at", "색의 끝"],
  shared: ["largest of all", "전체의 최댓값"],
  panel: ["largest of each head", "헤드마다 최댓값"],
  unit: ["1", "1"],
  least: ["Least weight", "최소 가중치"],
  find: ["Find a word", "단어 찾기"],
  found: ["{0} found", "{0}개 찾음"],
  options: ["Options", "옵션"],
  save: ["Save", "저장"],
  help: ["Keyboard", "단축키"],
  close: ["Close", "닫기"],
  zoomIn: ["Zoom in", "확대"],
  zoomOut: ["Zoom out", "축소"],
  compare: ["Heads as lines", "선으로 볼 헤드"],
  back: ["All heads", "모든 헤드"],
  scaleOf: ["weight 0 to {0}; {1}: below {2}", "가중치 0~{0}; {1}: {2} 미만"],
  blank: ["blank", "빈칸"],
  asZero: ["coloured as 0", "0과 같은 색"],
  over: [" (darkest above, up to {0})", " (그 위는 가장 진하게, 최대 {0})"],
  axes: [
    "rows are queries, columns are keys; layers and heads count from 0",
    "행은 쿼리, 열은 키; 층과 헤드는 0부터 셈",
  ],
  rounded: [
    "Numbers with ≈ are rounded to a 255th of the largest weight of their head; the {0} largest of each row are exact.",
    "≈가 붙은 수는 그 헤드의 최댓값의 255분의 1 단위로 반올림한 것이고, 각 행에서 가장 큰 {0}개는 정확합니다.",
  ],
  exact: ["Every weight is exact (float32).", "모든 가중치는 정확한 값(float32)입니다."],
  most: ["the {0} strongest of {1} links are drawn", "연결 {1}개 가운데 강한 것 {0}개를 그림"],
  noInflater: [
    "This browser cannot unpack the numbers in this page (it has no DecompressionStream). Chromium 80, Firefox 113 and Safari 16.4 can.",
    "이 브라우저는 페이지 안의 수를 풀 수 없습니다(DecompressionStream이 없음). Chromium 80, Firefox 113, Safari 16.4부터 됩니다.",
  ],
  broken: ["The numbers in this page are damaged.", "이 페이지 안의 수가 손상되었습니다."],
  aboutMatrix: [
    "Matrix of {0}. Arrow keys: another head or layer. Shift and arrow keys: another cell.",
    "{0}의 행렬. 화살표 키: 다른 헤드나 층. Shift와 화살표 키: 다른 칸.",
  ],
  aboutLines: ["Lines of {0}: queries on the left, keys on the right", "{0}의 선: 왼쪽이 쿼리, 오른쪽이 키"],
  tour: ["Type a sentence, and see where a small model looks", "문장을 입력하면 작은 모델이 어디를 보는지 보입니다"],
  guide: ["What to look at", "무엇을 볼까요"],
  keyPlay: ["play the generation, pause", "생성 과정 재생, 일시 정지"],
  keyArrows: ["another head, another layer", "다른 헤드, 다른 층"],
  keyShift: ["another cell of the matrix", "행렬의 다른 칸"],
  keyWords: ["matrix, lines", "행렬, 선"],
  keyToward: ["where it looks, who looks at it", "어디를 보는가, 누가 보는가"],
  keyHide: ["hide special tokens, merge word pieces", "특수 토큰 숨기기, 단어 조각 합치기"],
  keyFind: ["find a word", "단어 찾기"],
  keyZoom: ["zoom in, zoom out, whole matrix", "확대, 축소, 전체 행렬"],
  keyBack: ["let go of the word; back to all heads", "단어 선택 해제; 모든 헤드로"],
  keyHelp: ["this list", "이 목록"],
};

let language = 0;

/** Chooses the language of all that is said from now on. */
function speak(/** @type {string} */ lang) {
  language = lang === "ko" ? 1 : 0;
}

/** What is chosen of a pair of texts: in English, in Korean. @template T @param {T[]} pair */
function spoken(pair) {
  return pair[language];
}

/** A text of the page, its places filled. @param {string} name @param {...(string|number)} values */
function say(name, ...values) {
  return WORDS[name][language].replace(/\{(\d)\}/g, (_, place) => String(values[Number(place)]));
}
