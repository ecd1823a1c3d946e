#include <fmt/format.h>

#include "cli/plan_output.hpp"

namespace lantern::cli {

namespace {

// A text that stands between tags or quotes.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// Numbers with four digits are enough for a picture of a few thousand dots.
double rounded(double seconds) { return std::stod(fmt::format("{:.6g}", seconds)); }

// [seconds, bytes of every use, host, file] of every moment.
nlohmann::json moments_json(const PlanRow& row) {
  nlohmann::json moments = nlohmann::json::array();
  for (const plan::Moment& moment : plan::memory_over_time(
           row.selected, row.program, graph::ProgramKind::kMiniBatch, row.timeline)) {
    nlohmann::json entry{rounded(moment.seconds)};
    for (const Bytes bytes : moment.device) entry.push_back(bytes);
    entry.push_back(moment.host);
    entry.push_back(moment.file);
    moments.push_back(std::move(entry));
  }
  return moments;
}

// [start, end, label, class] of every run and copy. Class 1: made again.
nlohmann::json stream_json(const PlanRow& row) {
  const plan::InstructionList& list = row.program.of(graph::ProgramKind::kMiniBatch);
  const auto copies = [&](const std::vector<plan::Copy>& all,
                          const std::vector<plan::Stretch>& times) {
    nlohmann::json out = nlohmann::json::array();
    for (std::size_t i = 0; i < all.size(); ++i) {
      const plan::Buffer& buffer = row.program.buffers[all[i].buffer];
      out.push_back({rounded(times[i].start), rounded(times[i].end),
                     fmt::format("{}, {}", row.selected.tensors[buffer.tensor].name,
                                 format_bytes(buffer.bytes)),
                     0});
    }
    return out;
  };
  nlohmann::json runs = nlohmann::json::array();
  for (std::size_t i = 0; i < list.runs.size(); ++i) {
    const plan::Run& run = list.runs[i];
    const graph::SelectedOp& op = row.selected.ops[run.op];
    std::string label = fmt::format("{} of layer {}", op.op, op.layer);
    if (run.images > 0 && run.images < op.images)
      label += fmt::format(", images {} to {}", run.first_image, run.first_image + run.images - 1);
    if (run.again) label += ", again";
    runs.push_back({rounded(row.timeline.runs[i].start), rounded(row.timeline.runs[i].end),
                    std::move(label), run.again ? 1 : 0});
  }
  return {{"compute", std::move(runs)},
          {"copy out", copies(list.outs, row.timeline.outs)},
          {"copy in", copies(list.ins, row.timeline.ins)}};
}

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--ink:#1c1c1a;--soft:#6a6a66;--line:#d9d8d2;--paper:#fbfbf8;
--c0:#5b6b7a;--c1:#8fa0ad;--c2:#b9c2c9;--c3:#2f7dba;--c4:#8cc1e4;--c5:#c77f1a;--c6:#7a59b3;--c7:#b8413f;--c8:#9a968c}
@media (prefers-color-scheme:dark){:root{--ink:#e8e7e2;--soft:#a09f98;--line:#3a3a37;--paper:#191918;
--c0:#7e93a6;--c1:#5f7384;--c2:#46545f;--c3:#4f9dd8;--c4:#2d6c99;--c5:#e0a045;--c6:#a487da;--c7:#e07370;--c8:#77746c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1100px;margin:2em auto;padding:0 1em}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;padding:.3em .6em;border-bottom:1px solid var(--line)}
th:last-child,td:last-child{text-align:left}th{color:var(--soft);font-weight:500}
.no{color:var(--soft)}.scroll{overflow-x:auto}pre{white-space:pre-wrap;color:var(--soft);font:inherit}
svg{width:100%;display:block;touch-action:none}svg text{fill:var(--soft);font-size:12px}
.key{display:inline-block;margin-right:1.2em}.key i{display:inline-block;width:.8em;height:.8em;margin-right:.4em;border-radius:2px}
#tip{min-height:1.5em;color:var(--soft)}button,select{font:inherit;padding:.1em .6em}
)css";

// Draws from `plan`: one mini-batch at a time; the wheel zooms, dragging moves, both charts
// together.
constexpr std::string_view kScript = R"js(
const $=id=>document.getElementById(id),ns='http://www.w3.org/2000/svg';
const W=1000,L=70,MH=280,SH=132;let row=null,from=0,to=1;
const gib=b=>(b/2**30).toFixed(b<2**30?3:2)+' GiB';
function node(name,attrs,parent){const n=document.createElementNS(ns,name);
  for(const k in attrs)n.setAttribute(k,attrs[k]);parent.appendChild(n);return n}
function label(svg,x,y,text,anchor){node('text',{x,y,'text-anchor':anchor||'start'},svg).textContent=text}
const X=t=>L+(t-from)/(to-from)*(W-L);
function axis(svg,h){const step=10**Math.floor(Math.log10((to-from)/2));
  for(let t=Math.ceil(from/step)*step;t<=to&&(to-from)/step<=40;t+=step)
    if(Math.round(t/step)%((to-from)/step>12?5:1)===0){
      node('line',{x1:X(t),x2:X(t),y1:0,y2:h-18,stroke:'var(--line)'},svg);
      label(svg,X(t),h-4,t.toPrecision(3)+' s','middle')}}
function area(svg,steps,color){if(!steps.length)return;
  let up='',down='';for(const [a,b,lo,hi] of steps){up+=`L${a} ${hi}L${b} ${hi}`;down=`L${b} ${lo}L${a} ${lo}`+down}
  node('path',{d:'M'+(up+down).slice(1)+'Z',fill:color},svg)}
function memory(id,first,count,limit,colors){const svg=$(id);svg.replaceChildren();
  svg.setAttribute('viewBox',`0 0 ${W} ${MH}`);const ms=row.moments,n=ms.length;
  let top=limit||0;for(const m of ms){let s=0;for(let k=0;k<count;k++)s+=m[first+k];top=Math.max(top,s)}
  if(!top)return;const Y=b=>(MH-20)*(1-b/(top*1.04));axis(svg,MH);
  const base=new Float64Array(n);
  for(let k=0;k<count;k++){const steps=[];
    for(let i=0;i<n;i++){const v=ms[i][first+k],a=ms[i][0],b=i+1<n?ms[i+1][0]:row.seconds;
      if(b>=from&&a<=to)steps.push([Math.max(L,X(a)),Math.min(W,X(b)),Y(base[i]),Y(base[i]+v)]);base[i]+=v}
    area(svg,steps,colors[k])}
  for(const f of [0,.5,1])label(svg,L-6,Y(top*f)+4,gib(top*f),'end');
  if(limit){node('line',{x1:L,x2:W,y1:Y(limit),y2:Y(limit),stroke:'var(--ink)','stroke-dasharray':'6 4'},svg);
    label(svg,W-4,Y(limit)-4<10?Y(limit)+14:Y(limit)-4,'limit','end')}}
function streams(){const svg=$('streams');svg.replaceChildren();svg.setAttribute('viewBox',`0 0 ${W} ${SH}`);axis(svg,SH);
  const fills={compute:'var(--c3)','copy out':'var(--c6)','copy in':'var(--c6)'};let y=4;
  for(const name in fills){label(svg,L-6,y+20,name,'end');let last=-9;
    for(const s of row.streams[name]){if(s[1]<from||s[0]>to)continue;
      const a=Math.max(L,X(s[0])),b=Math.min(W,X(s[1]));if(b-last<.35)continue;last=b;
      const bar=node('rect',{x:a,y,width:Math.max(b-a-.15,.3),height:30,fill:s[3]?'var(--c5)':fills[name]},svg);
      bar.onmouseenter=()=>{$('tip').textContent=`${name}: ${s[2]}; ${s[0].toPrecision(4)} s to ${s[1].toPrecision(4)} s`}}
    y+=36}}
function draw(){memory('device',1,plan.uses.length,row.limit,plan.uses.map((_,k)=>`var(--c${k})`));
  const h=1+plan.uses.length;$('others').hidden=!row.host&&!row.file;
  memory('outside',h,2,0,['var(--c6)','var(--c8)']);streams()}
function show(i){row=plan.rows[i];from=0;to=row.seconds;draw()}
for(const id of ['device','outside','streams']){const svg=$(id);let held=null;
  const at=e=>{const r=svg.getBoundingClientRect();return from+(to-from)*((e.clientX-r.left)/r.width*W-L)/(W-L)};
  svg.addEventListener('wheel',e=>{e.preventDefault();const t=at(e),f=e.deltaY<0?.8:1.25;
    from=Math.max(0,t-(t-from)*f);to=Math.min(row.seconds,t+(to-t)*f);draw()},{passive:false});
  svg.onpointerdown=e=>{held=at(e);svg.setPointerCapture(e.pointerId)};svg.onpointerup=()=>{held=null};
  svg.onpointermove=e=>{if(held===null)return;let d=held-at(e);
    d=Math.max(-from,Math.min(row.seconds-to,d));from+=d;to+=d;draw()}}
if(plan.rows.length){const pick=$('pick');plan.rows.forEach((r,i)=>pick.add(new Option(`mini-batch ${r.mini_batch}`,i)));
  pick.onchange=()=>show(+pick.value);$('all').onclick=()=>show(+pick.value);
  pick.value=plan.rows.length-1;show(plan.rows.length-1)}else $('charts').hidden=true;
)js";

std::string table_html(const PlanAnswer& answer) {
  std::string html =
      "<div class=scroll><table><tr><th>mini-batch<th>memory<th>host<th>disk<th>s/iteration<th>ms/"
      "image<th>slow-down<th>bound<th>chunks<th>limited by\n";
  for (const PlanRow& row : answer.rows) {
    if (!row.fits) {
      html += fmt::format(
          "<tr class=no><td>{}<td>{}<td><td><td><td><td><td><td>does not fit: the smallest memory "
          "that works is {}\n",
          row.mini_batch, "", format_bytes(row.smallest));
      continue;
    }
    const Bytes memory = answer.budget.is_cpu() ? row.process() : row.program.arena_bytes;
    html += fmt::format(
        "<tr><td>{}<td>{}<td>{}<td>{}<td>{:.3g}<td>{:.4g}<td>{:.1f} %<td>{:.1f} %<td>{}<td>{}\n",
        row.mini_batch, format_bytes(memory), format_bytes(row.program.host_bytes),
        format_bytes(row.program.file_bytes), row.seconds_per_iteration(),
        1e3 * row.seconds() / static_cast<double>(row.mini_batch), 100 * row.slowdown(),
        100 * row.bound(), row.program.prediction.chunks, escaped(row.limited));
  }
  return html + "</table></div>\n";
}

std::string legend_html() {
  std::string html;
  for (int use = 0; use < plan::kUses; ++use) {
    html += fmt::format("<span class=key><i style=\"background:var(--c{})\"></i>{}</span>\n", use,
                        to_string(static_cast<plan::Use>(use)));
  }
  return html;
}

std::string data_json(const PlanAnswer& answer) {
  nlohmann::json data{{"uses", nlohmann::json::array()}, {"rows", nlohmann::json::array()}};
  for (int use = 0; use < plan::kUses; ++use)
    data["uses"].push_back(to_string(static_cast<plan::Use>(use)));
  for (const PlanRow& row : answer.rows) {
    if (!row.fits) continue;
    data["rows"].push_back({{"mini_batch", row.mini_batch},
                            {"seconds", row.timeline.seconds},
                            {"limit", row.arena_budget},
                            {"host", row.program.host_bytes},
                            {"file", row.program.file_bytes},
                            {"moments", moments_json(row)},
                            {"streams", stream_json(row)}});
  }
  std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  // "</script>" inside a name would end the script.
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string page_html(const PlanAnswer& answer) {
  return fmt::format(
      "<!doctype html><html lang=en><meta charset=utf-8>"
      "<meta name=viewport content=\"width=device-width\"><title>Plan of {0}</title>"
      "<style>{1}</style>\n<h1>Plan of {0}</h1>\n<pre>{2}</pre>\n{3}<pre>{4}</pre>\n"
      "<div id=charts><p><select id=pick></select> <button id=all>whole run</button> "
      "<span class=no>wheel: zoom, drag: move</span></p>\n"
      "<h2>Memory of the arena over one mini-batch</h2><p>{5}</p><svg id=device></svg>\n"
      "<div id=others><h2>Evicted: host memory and file</h2>"
      "<p><span class=key><i style=\"background:var(--c6)\"></i>host memory</span>"
      "<span class=key><i style=\"background:var(--c8)\"></i>file</span></p>"
      "<svg id=outside></svg></div>\n"
      "<h2>Streams</h2><p>"
      "<span class=key><i style=\"background:var(--c3)\"></i>computing</span>"
      "<span class=key><i style=\"background:var(--c5)\"></i>computing again</span>"
      "<span class=key><i style=\"background:var(--c6)\"></i>copying</span></p>"
      "<svg id=streams></svg><p id=tip></p></div>\n"
      "<script>const plan={6};{7}</script></html>\n",
      escaped(answer.network.path), kStyle, escaped(header_text(answer)), table_html(answer),
      escaped(advice_text(answer)), legend_html(), data_json(answer), kScript);
}

}  // namespace lantern::cli
